# tgen: text from a language model, at a shell.
#
#   make            the program, ./tgen
#   make help       every target
#   make V=1        shows the commands;  make MODE=debug|asan|tsan  builds a separate tree under build/
#   make CROSS=aarch64-linux-gnu-   builds for another machine, in build/aarch64-linux-gnu

MODE   ?= release
CROSS  ?=
PREFIX ?= /usr/local
V      ?= 0

VERSION := 0.1.0
CC      ?= cc
PKG     := libcjson libpcre2-8
B       := build/$(MODE)
TGEN    := $(if $(filter release,$(MODE)),tgen,$(B)/tgen)
PKG_CONFIG := pkg-config
CMOCKA  := -lcmocka
ifneq ($(CROSS),)
CC      := $(CROSS)gcc
B       := build/$(patsubst %-,%,$(CROSS))$(filter-out -release,-$(MODE))
TGEN    := $(B)/tgen
PKG_CONFIG := PKG_CONFIG_LIBDIR=$(or $(PKG_CONFIG_LIBDIR),/usr/lib/$(CROSS:%-=%)/pkgconfig) pkg-config
CMOCKA  := -Itests/cross
endif
Q       := $(if $(filter 0,$(V)),@,)
say      = $(if $(filter 0,$(V)),@printf '  %-6s %s\n' $(1) $(2),@:)

# ---- flags -----------------------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wformat=2 \
            -Wundef -Wcast-qual -Wwrite-strings -Wno-missing-field-initializers
HARDEN   := -fstack-protector-strong -fstack-clash-protection -Werror=format-security -fPIE
OPTIMISE_release := -O2 -D_FORTIFY_SOURCE=2
OPTIMISE_debug   := -O0
OPTIMISE_asan    := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPTIMISE_tsan    := -O1 -fsanitize=thread -fno-omit-frame-pointer

# The same source gives the same sums whatever the compiler could contract: FMA is only where a kernel says so.
TGEN_CFLAGS  := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -g $(OPTIMISE_$(MODE)) $(HARDEN) $(WARNINGS) -ffp-contract=off -pthread \
                -I. $(shell $(PKG_CONFIG) --cflags $(PKG) 2>/dev/null) $(CPPFLAGS) $(CFLAGS)
TGEN_LDFLAGS := $(OPTIMISE_$(MODE)) -pthread -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)
TGEN_LDLIBS  := $(shell $(PKG_CONFIG) --libs $(PKG) 2>/dev/null) -lm $(LDLIBS)

ARCH := $(shell $(CC) -dumpmachine | cut -d- -f1)

# Limits of stack frames, in bytes; core/thread.c sets the size of the stacks. A kernel's tiles and quant_columns.c's block
# may be large; both can be on one stack. Sanitizers make frames larger, so only the release build has limits.
FRAMES_release = -Wframe-larger-than=$(if $(filter $(KERNEL_OBJ) %/quant_columns.o,$@),917504,131072)

# Each rung of the kernel ladder has flags of its own; nothing else is built for more than the base machine.
FLAGS_kernels_avx2   := -O3 -mavx2 -mfma -mf16c
FLAGS_kernels_avxvnni := $(FLAGS_kernels_avx2) -mavxvnni
FLAGS_kernels_avx512 := -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
FLAGS_kernels_avx512vnni := $(FLAGS_kernels_avx512) -mavx512vnni
FLAGS_kernels_avx512bf16 := $(FLAGS_kernels_avx512vnni) -mavx512bf16 -mavx512vbmi
FLAGS_kernels_avx512bf16_attend := $(FLAGS_kernels_avx512bf16)
FLAGS_kernels_amx := $(FLAGS_kernels_avx512bf16) -mamx-tile -mamx-bf16 -mamx-int8
FLAGS_kernels_amx_i8 := $(FLAGS_kernels_amx)
FLAGS_kernels_amx_few := $(FLAGS_kernels_amx)
FLAGS_kernels_amx_attend := $(FLAGS_kernels_amx)
FLAGS_kernels_neon   := -O3
FLAGS_kernels_neondot := -O3 -march=armv8.2-a+dotprod
FLAGS_kernels_neoni8mm := -O3 -march=armv8.2-a+dotprod+i8mm
FLAGS_kernels_neonbf16 := -O3 -march=armv8.2-a+dotprod+i8mm+bf16

# ---- sources ---------------------------------------------------------------------------------------------------

LIB_SRC := $(wildcard core/*.c core/kernels/*.c tokenizer/*.c models/*.c models/families/*.c)
CLI_SRC := $(wildcard cli/*.c)
ifneq ($(ARCH),x86_64)
LIB_SRC := $(filter-out $(wildcard core/kernels/kernels_avx*.c core/kernels/kernels_amx*.c),$(LIB_SRC))
endif
ifneq ($(ARCH),aarch64)
LIB_SRC := $(filter-out $(wildcard core/kernels/kernels_neon*.c),$(LIB_SRC))
endif
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
KERNEL_OBJ := $(filter $(B)/core/kernels/%,$(LIB_OBJ))
CHECK_KERNELS := $(B)/tests/kernels/check_kernels
TILES_OBJ := $(filter %/kernels.o $(B)/core/kernels/kernels_amx%,$(KERNEL_OBJ))
TEST_SRC := $(wildcard tests/unit/test_*.c tests/golden/*.c)
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
FUZZ_BIN := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH     := $(basename $(wildcard tests/bench/*.c))
BENCH_BIN := $(addprefix $(B)/,$(BENCH))
DEPS     := $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_BIN:=.d) $(CHECK_KERNELS).d $(CHECK_KERNELS)_tiles.d $(TILES_OBJ:$(B)/%.o=$(B)/tiles/%.d) $(FUZZ_BIN:=.d) $(BENCH_BIN:=.d)

# ---- targets ---------------------------------------------------------------------------------------------------

.PHONY: all test check_kernels lint format install uninstall clean help $(BENCH) FORCE
.DELETE_ON_ERROR:

all: $(TGEN) ## builds the program

test: $(TGEN) $(TEST_BIN) $(CHECK_KERNELS) $(FUZZ_BIN) $(B)/tests/bench/make_model ## builds and runs every test (needs libcmocka-dev)
	$(Q)TGEN=$(TGEN) BUILD=$(B) tests/run.sh

lint: ## checks who includes whom, the format and what clang-tidy says
	$(Q)tests/lint.sh

format: ## formats every source file in place
	$(Q)git ls-files '*.c' '*.h' '*.inc' | xargs clang-format -i

help: ## shows this list
	@grep -hE '^[a-z_]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z_]+):.*## /\1\t/' | expand -t 12

clean: ## removes everything that was built
	$(Q)rm -rf build tgen

$(TGEN): $(LIB_OBJ) $(CLI_OBJ) $(B)/flags
	$(call say,LINK,$@)
	$(Q)$(CC) $(TGEN_LDFLAGS) -o $@ $(LIB_OBJ) $(CLI_OBJ) $(TGEN_LDLIBS)

$(B)/cli/%.o: TGEN_CFLAGS += -DTGEN_VERSION='"$(VERSION)"'

$(B)/%.o: %.c $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TGEN_CFLAGS) $(FRAMES_$(MODE)) $(FLAGS_$(basename $(notdir $<))) -MMD -MP -c -o $@ $<

$(TEST_BIN): $(B)/%: %.c $(LIB_OBJ) $(B)/flags
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TGEN_CFLAGS) $(TGEN_LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJ) $(TGEN_LDLIBS) $(CMOCKA)

# The kernels need nothing but libc, so their checker can be built for machines that no library is there for.
check_kernels: $(CHECK_KERNELS) ## builds the kernels' checker alone; with CROSS= too, without any library

$(CHECK_KERNELS): $(B)/%: %.c $(KERNEL_OBJ) $(B)/flags
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TGEN_CFLAGS) $(TGEN_LDFLAGS) -MMD -MP -o $@ $< $(KERNEL_OBJ) -lm $(CMOCKA)

# The same with AMX in C, which needs no more than AVX-512 BF16; tests/kernels/tiles.sh runs it.
$(B)/tiles/%.o: %.c $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TGEN_CFLAGS) $(FLAGS_$(basename $(notdir $<))) -include tests/kernels/tiles_emulated.h -MMD -MP -c -o $@ $<

$(CHECK_KERNELS)_tiles: tests/kernels/check_kernels.c $(TILES_OBJ:$(B)/%=$(B)/tiles/%) $(KERNEL_OBJ) $(B)/flags
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TGEN_CFLAGS) -DCASES=60 $(TGEN_LDFLAGS) -MMD -MP -MF $@.d -o $@ \
	    $(filter %.c %.o,$(filter-out $(TILES_OBJ),$^)) -lm $(CMOCKA)

# Without a fuzzer: replay.c feeds the targets their corpora. tests/fuzz/README.md says how to fuzz.
$(FUZZ_BIN): $(B)/%: %.c $(B)/tests/fuzz/replay.o $(LIB_OBJ) $(B)/flags
	$(call say,FUZZ,$<)
	$(Q)$(CC) $(TGEN_CFLAGS) $(TGEN_LDFLAGS) -MMD -MP -o $@ $< $(B)/tests/fuzz/replay.o $(LIB_OBJ) $(TGEN_LDLIBS)

# What measures: make tests/bench/NAME builds $(B)/tests/bench/NAME.
$(BENCH): %: $(B)/%

$(BENCH_BIN): $(B)/%: %.c $(LIB_OBJ) $(B)/flags
	$(call say,BENCH,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TGEN_CFLAGS) $(TGEN_LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJ) $(TGEN_LDLIBS)

# ---- installing ------------------------------------------------------------------------------------------------

SHARE  := $(DESTDIR)$(PREFIX)/share
TALES  := $(SHARE)/tgen/models/tales
BASH_COMPLETION := $(SHARE)/bash-completion/completions/tgen
ZSH_COMPLETION  := $(SHARE)/zsh/site-functions/_tgen
FISH_COMPLETION := $(SHARE)/fish/vendor_completions.d/tgen.fish

install: $(TGEN) ## puts program, manual, model and completions under PREFIX=/usr/local
	$(Q)install -D -m 755 $(TGEN) $(DESTDIR)$(PREFIX)/bin/tgen
	$(Q)install -D -m 644 cli/tgen.1 $(SHARE)/man/man1/tgen.1
	$(Q)install -d $(TALES) $(dir $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION))
	$(Q)install -m 644 models/tales/* $(TALES)
ifeq ($(CROSS),)
	$(Q)$(abspath $(TGEN)) --completions bash > $(BASH_COMPLETION)
	$(Q)$(abspath $(TGEN)) --completions zsh > $(ZSH_COMPLETION)
	$(Q)$(abspath $(TGEN)) --completions fish > $(FISH_COMPLETION)
else
	@echo "without completions: tgen --completions bash|zsh|fish prints them, where this build runs"
endif

uninstall: ## takes away what install has put there
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/tgen $(SHARE)/man/man1/tgen.1
	$(Q)rm -f $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)
	$(Q)rm -rf $(SHARE)/tgen

# A change of flags rebuilds everything that they touch.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(TGEN_CFLAGS) $(TGEN_LDFLAGS) $(TGEN_LDLIBS) $(VERSION)' | cmp -s - $@ || \
	    echo '$(CC) $(TGEN_CFLAGS) $(TGEN_LDFLAGS) $(TGEN_LDLIBS) $(VERSION)' > $@

-include $(DEPS)
