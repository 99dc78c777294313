"""scipy.stats with derivatives: ``from pullback.scipy import stats``.

Distributions are objects as in SciPy: ``stats.norm.logpdf(x, loc, scale)``, or ``stats.norm(loc, scale).logpdf(x)``.
They are differentiable in x, in the shapes, and in location and scale, to every order and in every mode. The
derivatives of distribution functions by their shapes are those of `pullback.scipy.special`.

>>> import pullback
>>> from pullback.scipy import stats
>>> a = pullback.tensor(2.0, requires_grad=True)
>>> stats.gamma.logsf(1.5, a).backward()
>>> a.grad
tensor(0.5620)
"""

from __future__ import annotations

from ..mirror import home, instead, refuse
from .continuous import DISTRIBUTIONS as _CONTINUOUS
from .discrete import DISTRIBUTIONS as _DISCRETE
from .kernel_density import gaussian_kde
from .multivariate import MULTIVARIATE as _MULTIVARIATE
from .sample_statistics import (
    gmean,
    hmean,
    kurtosis,
    linregress,
    moment,
    pearsonr,
    sem,
    skew,
    variation,
    zmap,
    zscore,
)

globals().update(_CONTINUOUS, **_DISCRETE, **_MULTIVARIATE)

__all__ = sorted(
    [
        *"gaussian_kde gmean hmean kurtosis linregress moment pearsonr sem skew variation zmap zscore".split(),
        *_CONTINUOUS,
        *_DISCRETE,
        *_MULTIVARIATE,
    ]
)

_REASONS = {
    "it depends on the order of the data alone, which does not change as they move a little": """
        spearmanr kendalltau weightedtau somersd wilcoxon mannwhitneyu ranksums kruskal friedmanchisquare rankdata
        brunnermunzel mood ansari fligner median_test page_trend_test tiecorrect chatterjeexi spearmanrho
        percentileofscore quantile_test mode bws_test""",
    "its parameters and values are whole numbers": """
        hypergeom randint nhypergeom multivariate_hypergeom random_table""",
    "it counts data in bins or exceedances, which changes in steps": """
        binned_statistic binned_statistic_2d binned_statistic_dd cumfreq relfreq ecdf fisher_exact barnard_exact
        boschloo_exact binomtest contingency chi2_contingency""",
    "it resamples at random": """
        bootstrap permutation_test monte_carlo_test goodness_of_fit multiscale_graphcorr""",
}
refuse("stats", {name: reason for reason, names in _REASONS.items() for name in names.split()})

_WELCH = "(numpy.mean(a) - numpy.mean(b)) / numpy.hypot(stats.sem(a), stats.sem(b))"
_VALUES = "with pullback.scipy.stats as stats; or give it the values, t.detach().numpy(), where no gradient is wanted"
instead(
    "stats",
    {
        "ttest_1samp": f"for the statistic, write (numpy.mean(a) - mean) / stats.sem(a), {_VALUES}",
        "ttest_rel": f"for the statistic, write numpy.mean(a - b) / stats.sem(a - b), {_VALUES}",
        "ttest_ind": f"for the statistic of equal_var=False, write {_WELCH}, {_VALUES}",
    },
)

__getattr__, __dir__ = home("stats", globals(), same="qmc BootstrapMethod MonteCarloMethod PermutationMethod FitError")
