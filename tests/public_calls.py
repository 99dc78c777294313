"""A good call of every public function that is no entry of the table: hostile calls are made from these.

A call is a line of source. What is called stands first, as its path below the library, or as a method of one of the
names that `Names` makes; it is the function whose arguments are replaced in turn. Functions that are given to others
are the library's own, so that no error in them is the user's.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import io
import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

CALLS = """
BFloat16Tensor(2, 3)
BoolTensor(2, 3)
ByteTensor(2, 3)
CharTensor(2, 3)
DoubleTensor(2, 3)
FloatTensor([1.0, 2.0])
HalfTensor(2, 3)
IntTensor(2, 3)
LongTensor(2, 3)
ShortTensor(2, 3)
Generator()
Tensor([1.0, 2.0])
device('cpu', 0)
finfo(lib.float32)
iinfo(lib.int32)
can_cast(lib.float32, lib.float64)
promote_types(lib.float32, lib.float64)
compile(lib.sum)
explain(loss)
is_tensor(x)
load(file)
save({'a': x}, file)
printoptions(precision=3)
set_printoptions(precision=3)
set_default_device('cpu')
set_default_dtype(lib.float32)
set_deterministic_debug_mode(0)
set_float32_matmul_precision('high')
set_num_threads(1)
set_warn_always(False)
sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3), layout=lib.sparse_csr)
sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2))
sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3))
sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,))
sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2))
sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2))
sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), layout=lib.sparse_csr)
use_deterministic_algorithms(False)
vmap(lib.sum)
enable_grad()
no_grad()
inference_mode()
set_grad_enabled(True)
autograd.backward(loss)
autograd.grad(loss, w)
autograd.gradcheck(lib.sin, (double,))
autograd.gradgradcheck(lib.sin, (double,))
autograd.function.once_differentiable(lib.sum)
autograd.Variable(x)
autograd.detect_anomaly()
autograd.set_detect_anomaly(True)
autograd.record_origins()
autograd.set_multithreading_enabled(True)
autograd.grad_mode.set_fwd_grad_enabled(True)
autograd.grad_mode.unsafe_preserve_version_counter(x)
autograd.forward_ad.unpack_dual(x)
make_dual(x, x)
exit_dual_level()
autograd.functional.jacobian(lib.sum, x)
autograd.functional.hessian(lib.sum, x)
autograd.functional.hvp(lib.sum, x, x)
autograd.functional.vhp(lib.sum, x, x)
autograd.functional.jvp(lib.sin, x, x)
autograd.functional.vjp(lib.sin, x, x)
autograd.graph.get_gradient_edge(loss)
autograd.graph.increment_version(x)
autograd.graph.register_multi_grad_hook([w], len)
autograd.graph.disable_saved_tensors_hooks('no')
autograd.graph.save_on_cpu()
autograd.graph.saved_tensors_hooks(lib.sin, lib.sin)
cuda.CUDAGraph()
cuda.Event()
cuda.ExternalStream(1)
cuda.Stream()
cuda.current_stream()
cuda.default_stream()
cuda.device(0)
cuda.get_device_capability()
cuda.get_device_name()
cuda.get_device_properties()
cuda.get_rng_state()
cuda.graph_pool_handle()
cuda.is_bf16_supported()
cuda.manual_seed(1)
cuda.manual_seed_all(1)
cuda.max_memory_allocated()
cuda.max_memory_reserved()
cuda.mem_get_info()
cuda.memory_allocated()
cuda.memory_reserved()
cuda.memory_stats()
cuda.reset_peak_memory_stats()
cuda.set_device(0)
cuda.set_per_process_memory_fraction(0.5)
cuda.set_rng_state(lib.get_rng_state())
cuda.set_rng_state_all([lib.get_rng_state()])
cuda.set_stream(None)
cuda.stream(None)
cuda.synchronize()
func.biharmonic(lib.sum)
func.debug_unwrap(x)
func.derivatives(lib.sin, 2)
func.fori_loop(10**31, 0, lambda i, x: x, x)
func.functional_call(linear, {'bias': lib.ones(2)}, (x,))
func.functionalize(lib.sum)
func.grad(lib.sum)
func.grad_and_value(lib.sum)
func.hessian(lib.sum)
func.jacfwd(lib.sum)
func.jacrev(lib.sum)
func.jet(lib.sin, (x,), ([x, x],))
func.jvp(lib.sin, (x,), (x,))
func.laplacian(lib.sum)
func.linear_operator(lib.sum, 2, lib.eye(3))
func.linearize(lib.sin, x)
func.replace_all_batch_norm_modules_(linear)
func.scan(lambda c, t: (c, t), x[0], x)
func.sparse.hessian_plan(lib.sum, x)
func.sparse.hessian_sparsity(lib.sum, x)
func.sparse.jacobian_plan(lib.sin, x)
func.sparse.jacobian_sparsity(lib.sin, x)
func.sparse.value_and_jacobian(lib.sin)
func.sparse_hessian(lib.sum)
func.sparse_jacobian(lib.sin)
func.stack_module_state([linear, linear])
func.vjp(lib.sin, x)
func.while_loop(lambda x: False, lambda x: x, x)
inspect.graph(loss)
inspect.memory(loss)
inspect.timeline(lib.sin, w)
nn.init.calculate_gain('relu')
nn.init.constant_(x, 1.0)
nn.init.dirac_(lib.ones(2, 2, 3))
nn.init.eye_(x)
nn.init.kaiming_normal_(x)
nn.init.kaiming_uniform_(x)
nn.init.normal_(x)
nn.init.ones_(x)
nn.init.orthogonal_(x)
nn.init.sparse_(x, 0.5)
nn.init.trunc_normal_(x)
nn.init.uniform_(x)
nn.init.xavier_normal_(x)
nn.init.xavier_uniform_(x)
nn.init.zeros_(x)
nn.utils.clip_grad_norm_([w], 1.0)
nn.utils.clip_grad_value_([w], 1.0)
nn.utils.clip_grads_with_norm_([w], 1.0, lib.tensor(2.0))
nn.utils.get_total_norm([x])
nn.utils.parameters_to_vector([x, x])
nn.utils.vector_to_parameters(lib.ones(6), [x])
nn.utils.spectral_norm(linear)
nn.utils.weight_norm(linear)
nn.utils.remove_spectral_norm(lib.nn.utils.spectral_norm(linear))
nn.utils.remove_weight_norm(lib.nn.utils.weight_norm(linear))
nn.utils.parametrize.is_parametrized(linear)
nn.utils.parametrize.register_parametrization(linear, 'weight', lib.nn.Tanh())
nn.utils.parametrize.remove_parametrizations(parametrized, 'weight')
nn.utils.parametrize.type_before_parametrizations(linear)
nn.utils.parametrize.ParametrizationList([lib.nn.Tanh()], x)
nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True)
nn.utils.rnn.pack_sequence([lib.ones(2), lib.ones(1)])
nn.utils.rnn.pad_packed_sequence(packed)
nn.utils.rnn.pad_sequence([lib.ones(2), lib.ones(1)])
nn.utils.rnn.unpack_sequence(packed)
nn.utils.rnn.unpad_sequence(x, lib.tensor([2, 1, 1]))
nn.Bilinear(3, 4, 2)
nn.CTCLoss()
nn.Buffer(x)
nn.DataParallel(linear)
nn.FractionalMaxPool2d(2, output_size=(1, 1))
nn.FractionalMaxPool3d(2, output_size=(1, 1, 1))
nn.Module()
nn.ModuleDict({'a': linear})
nn.ModuleList([linear])
nn.Parameter(x)
nn.ParameterDict({'a': w})
nn.ParameterList([w])
nn.RNNBase('GRU', 2, 3)
nn.RNNCellBase(2, 3, True, 1)
nn.RReLU(0.1, 0.3)
nn.Sequential(linear, lib.nn.Tanh())
optim.optimizer.register_optimizer_step_post_hook(len)
optim.optimizer.register_optimizer_step_pre_hook(len)
optim.Optimizer([w], {'lr': 1.0})
optim.ASGD([w])
optim.LBFGS([w])
optim.SGD([w], 0.1)
optim.Adadelta([w])
optim.Adafactor([w])
optim.Adagrad([w])
optim.Adam([w], 0.1)
optim.AdamW([w])
optim.Adamax([w])
optim.Muon([w])
optim.NAdam([w])
optim.RAdam([w])
optim.RMSprop([w])
optim.Rprop([w])
optim.SparseAdam([w])
optim.lr_scheduler.ChainedScheduler([schedule])
optim.lr_scheduler.ConstantLR(optimizer)
optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 5)
optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2)
optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
optim.lr_scheduler.LambdaLR(optimizer, rate)
optim.lr_scheduler.LinearLR(optimizer)
optim.lr_scheduler.MultiStepLR(optimizer, [2, 3])
optim.lr_scheduler.MultiplicativeLR(optimizer, rate)
optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 10)
optim.lr_scheduler.PolynomialLR(optimizer)
optim.lr_scheduler.ReduceLROnPlateau(optimizer)
optim.lr_scheduler.SequentialLR(optimizer, [schedule, lib.optim.lr_scheduler.ConstantLR(optimizer)], [2])
optim.lr_scheduler.StepLR(optimizer, 2)
optim.swa_utils.SWALR(optimizer, 0.1)
optim.swa_utils.AveragedModel(linear)
optim.swa_utils.get_ema_avg_fn(0.9)
optim.swa_utils.get_ema_multi_avg_fn(0.9)
optim.swa_utils.update_bn([x], linear)
random.fork_rng()
custom_jvp(larger, 1)
custom_vjp(larger, [0])
testing.assert_close(x, x)
testing.make_tensor(2, 3, dtype=lib.float32)
testing.audit(Square, double)
testing.check_payload(Boxed, names=["sin"])
testing.check_interpreter("vmap", ["sin"])
utils.checkpoint.check_backward_validity([w])
utils.checkpoint.checkpoint(lib.sin, w, use_reentrant=False)
utils.checkpoint.checkpoint_sequential([lib.sin, lib.cos], 2, w, use_reentrant=False)
utils.checkpoint.create_selective_checkpoint_contexts([lib.mul])
utils.checkpoint.detach_variable((w,))
utils.checkpoint.set_checkpoint_debug_enabled(True)
utils.checkpoint.set_checkpoint_early_stop(True)
utils.checkpoint.SelectiveCheckpointContext(is_recompute=True)
utils.checkpoint_steps(lib.sin, w, 3)
utils.data.default_collate([x, x])
utils.data.default_convert([x])
utils.data.random_split([1, 2, 3], [1, 2])
utils.data.BatchSampler([1, 2, 3], 2, False)
utils.data.ChainDataset([[1, 2]])
utils.data.ConcatDataset([[1, 2]])
utils.data.DataLoader([1, 2])
utils.data.RandomSampler([1, 2])
utils.data.SequentialSampler([1, 2])
utils.data.StackDataset([1, 2])
utils.data.Subset([1, 2], [0])
utils.data.SubsetRandomSampler([0, 1])
utils.data.TensorDataset(x)
utils.data.WeightedRandomSampler([0.5, 0.5], 2)
utils.dlpack.to_dlpack(x)
utils.explain_steps(10, 3, state=w)
overrides.handle_torch_function(lib.sum, (subclass,), subclass)
overrides.has_torch_function((x,))
overrides.is_tensor_like(x)
overrides.wrap_torch_function(len)
sparse.mm(lib.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)), x)
sparse.addmm(lib.ones(2, 3), lib.eye(2).to_sparse(), x)
sparse.log_softmax(x.to_sparse(), 1)
sparse.softmax(x.to_sparse(), 1)
sparse.sampled_addmm(x.to_sparse_csr(), lib.ones(2, 4), lib.ones(4, 3))
sparse.sum(lib.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)))
sparse.addmm(x, lib.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)), x)
sparse.sampled_addmm(lib.ones(2, 2).to_sparse_csr(), lib.ones(2, 3), lib.ones(3, 2))
sparse.softmax(lib.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)), 1)
sparse.log_softmax(lib.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)), 1)
array_api.matrix_transpose(x)
array_api.vecdot(x, x)
array_api.take_along_axis(x, lib.tensor([[0, 1]]))
array_api.unstack(x)
array_api.asarray([1.0])
array_api.zeros((2, 3))
array_api.ones((2, 3))
array_api.empty((2, 3))
array_api.full((2, 3), 1.0)
array_api.arange(0, 3)
array_api.linspace(0, 1, 3)
array_api.eye(2, 3)
array_api.astype(x, lib.float64)
array_api.isdtype(lib.float32, 'real floating')
array_api.result_type(x, x)
array_api.can_cast(lib.float32, lib.float64)
array_api.clip(x, 0, 1)
array_api.finfo(lib.float32)
array_api.iinfo(lib.int32)
array_api.floor_divide(x, x)
array_api.round(x)
array_api.sign(x)
array_api.where(x > 0, x, x)
array_api.nonzero(x)
array_api.reshape(x, (3, 2))
array_api.squeeze(lib.ones(1, 2), 0)
array_api.unique_all(x)
array_api.unique_counts(x)
array_api.unique_inverse(x)
array_api.unique_values(x)
array_api.cumulative_sum(x, axis=0)
array_api.cumulative_prod(x, axis=0)
array_api.sort(x)
array_api.argsort(x)
array_api.isin(x, x)
func.biharmonic(lib.sum)(x[0])
func.derivatives(lib.sin, 2)(x)
func.functionalize(lib.sum)(x)
func.grad(lib.sum)(x)
func.grad_and_value(lib.sum)(x)
func.hessian(lib.sum)(x)
func.jacfwd(lib.sin)(x)
func.jacrev(lib.sin)(x)
func.laplacian(lib.sum)(x[0])
func.linear_operator(lib.sum, 2, lib.eye(3))(x[0])
func.linearize(lib.sin, x)[1](x)
func.sparse_hessian(lib.sum)(x)
func.sparse_jacobian(lib.sin)(x)
func.vjp(lib.sin, x)[1](x)
vmap(lib.sin)(x)
optim.SGD([w], 0.1, momentum=0.5).step()
optim.Adam([w], 0.1).step()
optim.AdamW([w], 0.1).step()
optim.LBFGS([w]).step(total)
optimizer.zero_grad()
optimizer.state_dict()
optimizer.load_state_dict(optimizer.state_dict())
optimizer.add_param_group({'params': [lib.ones(2)]})
optimizer.register_step_pre_hook(len)
optimizer.register_step_post_hook(len)
optimizer.register_state_dict_pre_hook(len)
optimizer.register_state_dict_post_hook(len)
optimizer.register_load_state_dict_pre_hook(len)
optimizer.register_load_state_dict_post_hook(len)
schedule.step()
schedule.get_last_lr()
schedule.state_dict()
schedule.load_state_dict(schedule.state_dict())
optim.lr_scheduler.ReduceLROnPlateau(optimizer).step(1.0)
optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 5).step(1.0)
optim.swa_utils.AveragedModel(linear).update_parameters(linear)
optim.swa_utils.AveragedModel(linear)(x)
linear.register_parameter('a', lib.nn.Parameter(w))
linear.register_buffer('a', x)
linear.add_module('a', linear)
linear.register_module('a', linear)
linear.parameters()
linear.named_parameters()
linear.buffers()
linear.named_buffers()
linear.children()
linear.named_children()
linear.modules()
linear.named_modules()
linear.get_submodule('')
linear.get_parameter('weight')
lib.nn.BatchNorm1d(3).get_buffer('running_mean')
linear.apply(id)
linear.to(lib.float64)
linear.type(lib.float64)
linear.float()
linear.double()
linear.half()
linear.bfloat16()
linear.cpu()
linear.train(True)
linear.eval()
linear.requires_grad_(True)
linear.zero_grad()
linear.compile()
linear.state_dict()
linear.load_state_dict(linear.state_dict())
linear.register_forward_pre_hook(len)
linear.register_forward_hook(len)
linear.register_full_backward_hook(len)
linear.register_full_backward_pre_hook(len)
linear.register_state_dict_post_hook(len)
linear.register_state_dict_pre_hook(len)
linear.register_load_state_dict_pre_hook(len)
linear.register_load_state_dict_post_hook(len)
layers.append(linear)
layers.extend([linear])
layers.insert(0, linear)
layers.pop(0)
layers(x)
nn.ModuleList([linear]).append(linear)
nn.ModuleList([linear]).extend([linear])
nn.ModuleList([linear]).insert(0, linear)
nn.ModuleList([linear]).pop(0)
nn.ModuleDict({'a': linear}).pop('a')
nn.ModuleDict({'a': linear}).update({'b': linear})
nn.ParameterList([w]).append(w)
nn.ParameterList([w]).extend([w])
nn.ParameterDict({'a': w}).pop('a')
nn.ParameterDict({'a': w}).update({'b': w})
nn.ParameterDict({'a': w}).setdefault('a', w)
nn.ParameterDict({'a': w}).get('a')
nn.ParameterDict({'a': w}).fromkeys(['a'], w)
nn.DataParallel(linear)(x)
nn.CTCLoss()(lib.zeros(4, 2, 3), lib.ones(2, 2).long(), lib.tensor([4, 4]), lib.tensor([2, 2]))
nn.Bilinear(3, 4, 2)(x, lib.ones(2, 4))
nn.FractionalMaxPool2d(2, output_size=(1, 1))(lib.ones(1, 4, 4))
nn.FractionalMaxPool3d(2, output_size=(1, 1, 1))(lib.ones(1, 4, 4, 4))
nn.RReLU(0.1, 0.3)(x)
generator.manual_seed(1)
generator.get_state()
generator.set_state(generator.get_state())
loss.backward()
w.register_hook(len)
w.register_post_accumulate_grad_hook(len)
w.requires_grad_(True)
loss.retain_grad()
x.apply_(rate)
x.map_(x, larger)
x.map2_(x, x, largest)
x.as_subclass(lib.Tensor)
x.bernoulli_(0.5)
x.cauchy_()
x.exponential_()
x.geometric_(0.5)
x.log_normal_()
x.normal_()
x.random_(0, 3)
x.uniform_()
x.copy_(x)
x.fill_diagonal_(1.0)
x.index_add_(0, index, x)
x.index_copy_(0, index, x)
x.index_fill_(0, index, 1.0)
x.index_reduce_(0, index, x, 'mean')
x.masked_fill_(x > 0, 1.0)
x.masked_scatter_(x > 0, x)
x.put_(index, lib.ones(2))
x.scatter_(0, lib.tensor([[0, 1, 0]]), x)
x.scatter_add_(0, lib.tensor([[0, 1, 0]]), x)
x.scatter_reduce_(0, lib.tensor([[0, 1, 0]]), x, 'sum')
x.resize_(2, 3)
x.set_(x)
x.squeeze_(0)
x.unsqueeze_(0)
x.swapaxes_(0, 1)
x.swapdims_(0, 1)
x.t_()
x.transpose_(0, 1)
x.tril_()
x.triu_()
x.bfloat16()
x.bool()
x.byte()
x.cdouble()
x.cfloat()
x.char()
x.cpu()
x.double()
x.float()
x.half()
x.int()
x.long()
x.short()
x.data_ptr()
x.dim()
x.element_size()
x.is_contiguous()
x.nelement()
x.numpy()
x.size(0)
x.stride(0)
x.storage_offset()
x.tolist()
lib.ones(()).item()
x.new(2, 3)
x.new_empty((2, 3))
x.new_empty_strided((2, 3), (3, 1))
x.new_full((2, 3), 1.0)
x.new_ones((2, 3))
x.new_tensor([1.0])
x.new_zeros((2, 3))
x.sparse_mask(x.to_sparse())
x.to_dense()
x.to_sparse()
x.to_device('cpu')
x.type()
x.type_as(x)
"""
"""Calls of functions, of what functions return, and of methods."""

NOT_CALLED = """
AcceleratorError OutOfMemoryError cuda.StreamContext cuda.graph
cuda.make_graphed_callables
autograd.AccumulateGrad autograd.FunctionCtx autograd.Function autograd.GradcheckError autograd.Node
autograd.SavedTensor autograd.forward_ad.UnpackedDualTensor autograd.function.InplaceFunction
autograd.function.NestedIOFunction autograd.graph.GradientEdge compile.Compiled dtype inspect.Explanation inspect.Graph
inspect.GraphMemory inspect.Timeline interpreters.Payload interpreters.each layout linalg.LinAlgError memory_format
nn.utils.rnn.PackedSequence optim.lr_scheduler.LRScheduler overrides.BaseTorchFunctionMode
func.sparse.Plan func.sparse.Sparsity overrides.TorchFunctionMode sparse.SparseTensor
testing.Audit testing.Change testing.Code testing.Finding testing.Line utils.checkpoint.CheckpointError
utils.checkpoint.CheckpointFunction utils.checkpoint.CheckpointPolicy utils.checkpoint.GraphExecGroup
utils.data.Dataset utils.data.IterableDataset utils.data.Sampler utils.hooks.RemovableHandle
"""
"""Classes that the library makes the objects of, those that are only inherited from, and two functions of CUDA graphs,
whose arguments need a GPU or are run: tests/device/test_graphs.py has their bad input."""

OF_PYTHON = "Size overrides.disabled_torch_function_impl"
"""Their errors are Python's own: a `Size` is made by the constructor of tuples, each time that a shape is asked for."""


class Names(dict[str, Any]):
    """The names in the lines above, each made when it is first asked for; others are those of the library."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib

    def __missing__(self, name: str) -> Any:
        make = MADE.get(name)
        found = make(self) if make is not None else getattr(self.lib, name, None)
        if found is None:
            raise KeyError(name)  # Python looks on among the builtins
        self[name] = found
        return found


def _square(names: Names) -> Any:
    lib: Any = names.lib

    class Square(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return lib.mul(x, x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    return Square


def _subclass(names: Names) -> Any:
    class Marked(names.lib.Tensor):  # type: ignore[name-defined]
        pass

    return names.lib.ones(2, 3).as_subclass(Marked)


def _file(names: Names) -> io.BytesIO:
    file = io.BytesIO()
    names.lib.save({"a": names["x"]}, file)
    file.seek(0)
    return file


def _in_a_level(name: str) -> Callable[[Names], Callable[..., Any]]:
    """The function of `autograd.forward_ad` of that name, called where a dual level was entered."""

    def make(names: Names) -> Callable[..., Any]:
        ad = names.lib.autograd.forward_ad

        @functools.wraps(getattr(ad, name))
        def call(*args: Any, **kwargs: Any) -> Any:
            ad.enter_dual_level()
            try:
                return getattr(ad, name)(*args, **kwargs)
            finally:
                with suppress(RuntimeError):  # of a level that the call has left
                    ad.exit_dual_level()

        return call

    return make


MADE: dict[str, Callable[[Any], Any]] = {
    "Boxed": lambda names: importlib.import_module("pullback.testing.payloads.carried").Boxed,
    "Square": _square,
    "exit_dual_level": _in_a_level("exit_dual_level"),
    "make_dual": _in_a_level("make_dual"),
    "double": lambda n: n.lib.ones(3, dtype=n.lib.float64, requires_grad=True),
    "file": _file,
    "generator": lambda n: n.lib.Generator(),
    "index": lambda n: n.lib.tensor([1, 0]),
    "layers": lambda n: n.lib.nn.Sequential(n["linear"], n.lib.nn.Tanh()),
    "lib": lambda n: n.lib,
    "linear": lambda n: n.lib.nn.Linear(3, 2),
    "loss": lambda n: (n["w"] * n["w"]).sum(),
    "optimizer": lambda n: n.lib.optim.SGD([n["w"]], 0.1, momentum=0.5),
    "packed": lambda n: n.lib.nn.utils.rnn.pack_sequence([n.lib.ones(2), n.lib.ones(1)]),
    "parametrized": lambda n: n.lib.nn.utils.parametrize.register_parametrization(
        n["linear"], "weight", n.lib.nn.Tanh()
    ),
    "larger": lambda n: operator.add,
    "largest": lambda n: max,
    "total": lambda n: n.lib.ones((), requires_grad=True).sum,
    "rate": lambda n: float,
    "schedule": lambda n: n.lib.optim.lr_scheduler.StepLR(n["optimizer"], 2),
    "subclass": _subclass,
    "w": lambda n: n.lib.ones(2, 3, requires_grad=True),
    "x": lambda n: n.lib.ones(2, 3),
}


class Call(NamedTuple):
    """A good call, as compiled expressions of `Names`: what is called and its arguments."""

    name: str
    text: str
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def base(self, lib: ModuleType) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, after what is called, which is made with them."""
        names = Names(lib)
        function = eval(self.function, {}, names)
        return (function, *(eval(a, {}, names) for a in self.args)), {
            name: eval(a, {}, names) for name, a in self.kwargs.items()
        }

    def parameters(self, lib: ModuleType) -> tuple[str, ...]:
        """The arguments of what is called that the call does not give by place."""
        try:
            found = inspect.signature(eval(self.function, {}, Names(lib))).parameters.values()
        except (TypeError, ValueError):
            return ()
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        names = [p.name if p.kind in kinds else "" for p in found if p.kind is not p.VAR_KEYWORD]
        return tuple(name for name in names[len(self.args) :] if name)


def _compiled(node: Any) -> Any:
    return compile(ast.Expression(node), "<call>", "eval")


def calls(text: str) -> Iterator[Call]:
    """The calls that the lines of a text are."""
    for line in text.strip().splitlines():
        node: Any = ast.parse(line, mode="eval").body
        called = node.func
        while isinstance(called, (ast.Call, ast.Subscript)):
            called = called.func if isinstance(called, ast.Call) else called.value
        name = ast.unparse(called)
        kwargs = {k.arg: _compiled(k.value) for k in node.keywords}
        yield Call(name, line, _compiled(node.func), tuple(map(_compiled, node.args)), kwargs)


def used(found: Any) -> Any:
    """The result of a call, after what it does only when it is used: a generator's, and that of a ``with``."""
    if isinstance(found, Iterator):
        return [*found]
    if hasattr(type(found), "__enter__") and hasattr(type(found), "__exit__"):
        with found:
            return found
    return found
