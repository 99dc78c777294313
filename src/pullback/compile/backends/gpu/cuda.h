/* The words that CUDA C lacks and the C of `elementary.h` and `arithmetic.h` uses; first part of every CUDA source.

   NVRTC compiles a text alone: it has no <stdint.h> and no <math.h>. Functions and tables without a word of where they
   run are the device's, by the option -default-device. */

#define PB_CUDA
#define PB_TABLE __device__ const
#define _Bool bool

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#endif
