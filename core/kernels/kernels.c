/*
 * The ladder: which levels exist, which of them this machine can run, and the finished table of
 * each. A level's table is the one below that the machine has, with its own rung laid over it. The
 * tables are built once, for every level the machine has, so that several can be used in one
 * process (tests do).
 */
#include <pthread.h>
#include <string.h>

#include "core/kernels/rungs.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static bool always(void)
{
    return true;
}

#if defined(__x86_64__)

struct x86_features {
    unsigned ecx1; /* cpuid 1 */
    unsigned ebx7; /* cpuid 7.0 */
    unsigned ecx7;
    unsigned edx7;
    unsigned eax71; /* cpuid 7.1 */
    unsigned state; /* XCR0: the registers that the operating system saves */
};

/* Intel SDM volume 1, 14.3 and 15.2: the CPU flags alone do not say that the registers may be used;
 * XCR0 is readable where OSXSAVE is set. */
static struct x86_features x86_detect(void)
{
    struct x86_features f = {0};
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return f;
    f.ecx1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        f.ebx7 = b;
        f.ecx7 = c;
        f.edx7 = d;
        if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) /* a: the last subleaf */
            f.eax71 = a;
    }
    unsigned high;
    __asm__("xgetbv" : "=a"(f.state), "=d"(high) : "c"(0));
    return f;
}

static bool all_of(unsigned flags, unsigned wanted)
{
    return (flags & wanted) == wanted;
}

static bool has_avx2(void)
{
    const unsigned xmm_ymm = 0x6;
    const struct x86_features f = x86_detect();
    return all_of(f.state, xmm_ymm) && all_of(f.ecx1, bit_AVX | bit_FMA | bit_F16C) &&
           all_of(f.ebx7, bit_AVX2);
}

static bool has_avxvnni(void)
{
    return has_avx2() && all_of(x86_detect().eax71, bit_AVXVNNI);
}

static bool has_avx512(void)
{
    const unsigned opmask_zmm = 0xe0;
    const struct x86_features f = x86_detect();
    return has_avx2() && all_of(f.state, opmask_zmm) &&
           all_of(f.ebx7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
}

static bool has_avx512vnni(void)
{
    return has_avx512() && all_of(x86_detect().ecx7, bit_AVX512VNNI);
}

static bool has_avx512bf16(void)
{
    const struct x86_features f = x86_detect();
    return has_avx512vnni() && all_of(f.eax71, bit_AVX512BF16) && all_of(f.ecx7, bit_AVX512VBMI);
}

/* Linux lends the registers of tiles to a process that asks for them (arch_prctl, "Dynamic XSTATE
 * features", since 5.16): its threads save them from then on. */
static bool tiles_granted(void)
{
#if defined(SYS_arch_prctl)
    enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0;
#else
    return false;
#endif
}

/* The kernels' checker can be built with tiles in C (tests/kernels/tiles_emulated.h). */
#if !defined(TILES_EMULATED)
#define TILES_EMULATED false
#endif

static bool has_tiles(void)
{
    const unsigned tile_config_and_data = 0x60000,
                   amx_bf16_tile_int8 = 1u << 22 | 1u << 24 | 1u << 25;
    const struct x86_features f = x86_detect();
    return all_of(f.state, tile_config_and_data) && all_of(f.edx7, amx_bf16_tile_int8) &&
           tiles_granted();
}

static bool has_amx(void)
{
    return has_avx512bf16() && (TILES_EMULATED || has_tiles());
}

/* AMD's dots of bf16 are twice as fast as f32 FMA, or as fast. Intel's are half as fast (78 beside
 * 156 GFLOP/s on a core of Sapphire Rapids): there the level below, which widens bf16 to f32, is
 * the better one, or the one above. */
static bool is_amd(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0; /* gcc 12 does not see that they are set */
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
           d == signature_AMD_edx;
}

/* Zen 4 is the one of its family that has AVX-512. */
static bool is_zen4(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return is_amd() && has_avx512() && __get_cpuid(1, &a, &b, &c, &d) &&
           (a >> 8 & 15) + (a >> 20 & 255) == 0x19;
}

#elif defined(__aarch64__)

/* The kernel says what the processor has and what it keeps for a process. */
static bool has_neon(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMD;
}

static bool has_neondot(void)
{
    return has_neon() && getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

static bool has_neoni8mm(void)
{
    return has_neondot() && getauxval(AT_HWCAP2) & HWCAP2_I8MM;
}

static bool has_neonbf16(void)
{
    return has_neoni8mm() && getauxval(AT_HWCAP2) & HWCAP2_BF16;
}

#endif

static const struct rung {
    const char *level;
    bool (*runs_here)(void); /* with what it needs of the rungs below */
    bool (*pays_here)(void); /* where it runs */
    void (*fill)(struct kernels *k);
} rungs[] = {
    {"scalar", always, always, kernels_scalar_fill},
#if defined(__x86_64__)
    {"avx2", has_avx2, always, kernels_avx2_fill},
    {"avxvnni", has_avxvnni, always, kernels_avxvnni_fill},
    {"avx512", has_avx512, always, kernels_avx512_fill},
    {"avx512vnni", has_avx512vnni, always, kernels_avx512vnni_fill},
    {"avx512bf16", has_avx512bf16, is_amd, kernels_avx512bf16_fill},
    {"amx", has_amx, always, kernels_amx_fill},
#elif defined(__aarch64__)
    {"neon", has_neon, always, kernels_neon_fill},
    {"neondot", has_neondot, always, kernels_neondot_fill},
    {"neoni8mm", has_neoni8mm, always, kernels_neoni8mm_fill},
    {"neonbf16", has_neonbf16, always, kernels_neonbf16_fill},
#endif
};

enum { N_RUNGS = sizeof rungs / sizeof *rungs };

const char *const kernels_levels[] = {
    "scalar",
#if defined(__x86_64__)
    "avx2",   "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx",
#elif defined(__aarch64__)
    "neon",   "neondot", "neoni8mm", "neonbf16",
#endif
    NULL,
};

/* A thread of Zen 4 reads 33 GB/s of a matrix in BF16 that is asked for 2 lines ahead, 32 where it
 * is 4 and 28 where it is 16, and codes likewise; Zen 5 reads 33 without hints and 36 where it is
 * 16. L1 is a third smaller than there, too: what comes later is read from L2 at up to twice the
 * speed. */
bool kernels_asks_early = true;
bool kernels_passes_l2 = false;

static void find_asks(void)
{
#if defined(__x86_64__)
    kernels_asks_early = !is_zen4();
    kernels_passes_l2 = is_amd() && kernels_asks_early;
#endif
}

static struct kernels tables[N_RUNGS];
static size_t n_tables; /* of the levels that this machine has, from the lowest on */
static size_t best;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void build_tables(void)
{
    find_asks();
    for (const struct rung *rung = rungs; rung < rungs + N_RUNGS; rung++) {
        if (!rung->runs_here())
            continue;
        struct kernels *k = &tables[n_tables];
        if (n_tables > 0)
            *k = k[-1];
        rung->fill(k);
        k->level = rung->level;
        if (rung->pays_here())
            best = n_tables;
        n_tables++;
    }
}

const struct kernels *kernels_best(void)
{
    pthread_once(&tables_once, build_tables);
    return &tables[best];
}

const struct kernels *kernels_for(const char *level)
{
    pthread_once(&tables_once, build_tables);
    for (size_t i = 0; i < n_tables; i++)
        if (strcmp(tables[i].level, level) == 0)
            return &tables[i];
    return NULL;
}
