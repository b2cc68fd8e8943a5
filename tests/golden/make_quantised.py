"""Writes small quantised checkpoints of every layout in use: python3 make_quantised.py [NAME...]

A layout is a pair: encode, how its tool packs a matrix, and decode, how the original unpacks it again. What is
compared with is decode of the stored bits, in float64, in the plain forward pass of make_reference.py:
activations are not quantised. Embedding, head and norms stay in 16 bits, as the tools leave them.
"""
import os
import sys

sys.dont_write_bytecode = True

import numpy as np

from make_families import MINISTRAL_SOURCE, common, llama_tensors, ministral3
from make_reference import E4M3, bf16, f16, f32, fp8, i8, i32, i64, write_miniature

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantised")
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
LLAMA = "huggingface/transformers src/transformers/models/llama/modeling_llama.py; "
CT = (
    "vllm-project/compressed-tensors src/compressed_tensors/compressors/quantized_compressors/pack_quantized.py at 4432f13ef9bf, "
    "naive_quantized.py at 179cba930438, quantization/lifecycle/forward.py at 01dd1a58d39e (_dequantize)"
)
GPTQ = (
    "AutoGPTQ/AutoGPTQ auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py at c80855e25b16 (packing), "
    "ModelCloud/GPTQModel convert_gptq_v1_to_v2_format (zeros stored less one) and scales[g_idx] * (weight - zeros[g_idx])"
)
AWQ = (
    "casper-hansen/AutoAWQ awq/modules/linear/gemm.py at d9dc8e564fed (packing), awq/utils/packing_utils.py at 7ee28736ab85 "
    "(dequantize_gemm)"
)
DEEPSEEK = "deepseek-ai/DeepSeek-V3 inference/kernel.py at 06231633430c (weight_quant, weight_dequant)"


def groups(x, size):
    """The largest magnitude of each group of size columns, [rows, groups]."""
    return np.abs(x).reshape(len(x), -1, size).max(-1)


def pack(x, bits):
    """Non-negative numbers along the last axis into int32, the lowest bits first."""
    per = 32 // bits
    shifts = np.arange(per) * bits
    return (x.astype(np.int64).reshape(*x.shape[:-1], -1, per) << shifts).sum(-1)


def unpack(packed, bits):
    words = packed.view(np.uint32).astype(np.int64)[..., None] >> np.arange(32 // bits) * bits
    return (words & (1 << bits) - 1).reshape(*packed.shape[:-1], -1)


# ---- FP8 ----


class Fp8Block:
    """One scale for each block of the matrix; the last ones are cut off."""

    def __init__(self, rows, columns, scale=f32, name="weight_scale_inv"):
        self.rows, self.columns, self.scale, self.name = rows, columns, scale, name

    def spread(self, s, shape):
        return np.repeat(np.repeat(s, self.rows, 0), self.columns, 1)[: shape[0], : shape[1]]

    def encode(self, w, rng):
        largest = np.zeros((-(-w.shape[0] // self.rows), -(-w.shape[1] // self.columns)))
        for (i, j), x in np.ndenumerate(w):
            at = i // self.rows, j // self.columns
            largest[at] = max(largest[at], abs(x))
        scale = self.scale(largest / 448)
        return {"weight": fp8(w / self.spread(scale.values, w.shape)), self.name: scale}

    def decode(self, t, without=None):
        scale = t[self.name].values
        if without:
            scale = np.full_like(scale, scale[0, 0])
        return E4M3[t["weight"].bits] * self.spread(scale, t["weight"].bits.shape)

    lacks = "one scale for all blocks"


class Fp8Scaled:
    """One scale for the matrix or for each row; what is stored besides for activations plays no part."""

    lacks = "scales of 1 / 448"

    def __init__(self, name, shape, scale, input_name=None):
        self.name, self.shape, self.scale, self.input_name = name, shape, scale, input_name

    def encode(self, w, rng):
        largest = np.abs(w).max(1, keepdims=True) if self.shape == "rows" else np.abs(w).max().reshape(self.shape)
        scale = self.scale(largest / 448)
        t = {"weight": fp8(w / scale.values), self.name: scale}
        if self.input_name:
            t[self.input_name] = self.scale(np.full(self.shape, rng.uniform(0.01, 0.1)))
        return t

    def decode(self, t, without=None):
        return E4M3[t["weight"].bits] * (1 / 448 if without else t[self.name].values)


# ---- compressed-tensors ----


class CompressedInt:
    """w = (q - zero) * scale; columns in groups of size, or whole rows where size is 0."""

    def __init__(self, bits, size, packed, symmetric=True, ordered=False):
        self.bits, self.size, self.packed, self.symmetric, self.ordered = bits, size, packed, symmetric, ordered
        self.lacks = "g_idx in order" if ordered else "one scale a row" if size else "scale of its first row"
        self.lacks = self.lacks if symmetric else "zero points of 0"

    def spread(self, x, n_in, g_idx=None):
        size = self.size or n_in
        return x[:, np.arange(n_in) // size if g_idx is None else g_idx]

    def encode(self, w, rng):
        n_out, n_in = w.shape
        size, half = self.size or n_in, 1 << self.bits - 1
        order = rng.permutation(n_in) if self.ordered else np.arange(n_in)
        sorted_w = w[:, order]
        g_idx = np.empty(n_in, np.int64)
        g_idx[order] = np.arange(n_in) // size
        zero = np.zeros((n_out, n_in // size), np.int64)
        if self.symmetric:
            scale = bf16(groups(sorted_w, size) * 2 / (2 * half - 1))
        else:
            high = np.maximum(sorted_w.reshape(n_out, -1, size).max(-1), 0)
            low = np.minimum(sorted_w.reshape(n_out, -1, size).min(-1), 0)
            scale = bf16((high - low) / (2 * half - 1))
            zero = np.clip(np.round(-low / scale.values) - half, -half, half - 1).astype(np.int64)
        q = np.round(w / self.spread(scale.values, n_in, g_idx)) + self.spread(zero, n_in, g_idx)
        q = np.clip(q, -half, half - 1).astype(np.int64)
        t = {"weight_scale": scale}
        if self.packed:
            t.update(weight_packed=i32(pack(q + half, self.bits)), weight_shape=i64(np.array(w.shape)))
        else:
            t["weight"] = i8(q)
        if not self.symmetric:
            t["weight_zero_point"] = i32(pack((zero + half).T, self.bits).T) if self.packed else i8(zero)
        if self.ordered:
            t["weight_g_idx"] = i32(g_idx)
        return t

    def decode(self, t, without=None):
        half, scale = 1 << self.bits - 1, t["weight_scale"].values
        if self.packed:
            n_out, n_in = t["weight_shape"].bits
            q = unpack(t["weight_packed"].bits, self.bits)[:, :n_in] - half
        else:
            q = t["weight"].bits.astype(np.int64)
            n_out, n_in = q.shape
        zero = np.zeros(scale.shape, np.int64)
        if not self.symmetric and not without:
            zero = t["weight_zero_point"].bits
            zero = unpack(np.ascontiguousarray(zero.T), self.bits).T[:n_out] - half if self.packed else zero
        g_idx = t["weight_g_idx"].bits if self.ordered and not without else None
        if without and self.symmetric and not self.ordered:
            scale = np.repeat(scale[:, :1], scale.shape[1], 1) if self.size else np.full_like(scale, scale[0, 0])
        return (q - self.spread(zero, n_in, g_idx)) * self.spread(scale, n_in, g_idx)


# ---- GPTQ and AWQ: stored [in, out] ----


def asymmetric(w, g_idx, n_groups, symmetric, least_zero):
    """4-bit q [in, out], zeros and float16 scales [groups, out] of a matrix [out, in]."""
    x = w.T
    scale, zero = np.zeros((n_groups, len(w))), np.full((n_groups, len(w)), 8)
    for g in range(n_groups):
        part = x[g_idx == g]
        if symmetric:
            scale[g] = np.abs(part).max(0) * 2 / 15
        else:
            low, high = np.minimum(part.min(0), 0), np.maximum(part.max(0), 0)
            scale[g] = (high - low) / 15
            zero[g] = np.clip(np.round(-low / scale[g]), least_zero, 15)
    scale = f16(scale)
    q = np.clip(np.round(x / scale.values[g_idx]) + zero[g_idx], 0, 15).astype(np.int64)
    return q, zero, scale


class Gptq:
    def __init__(self, size, symmetric=True, ordered=False, version=1, zero_bias=False):
        self.size, self.symmetric, self.ordered, self.version = size, symmetric, ordered, version
        self.zero_bias = zero_bias
        self.lacks = "g_idx in order" if ordered else "zeros as stored less one"

    def encode(self, w, rng):
        n_out, n_in = w.shape
        size = self.size if self.size > 0 else n_in
        g_idx = np.empty(n_in, np.int64)
        g_idx[rng.permutation(n_in) if self.ordered else np.arange(n_in)] = np.arange(n_in) // size
        q, zero, scale = asymmetric(w, g_idx, n_in // size, self.symmetric, 1)
        t = {
            "qweight": i32(pack(q.T, 4).T),
            "qzeros": i32(pack(zero - 1 if self.version == 1 else zero, 4)),
            "scales": scale,
            "g_idx": i32(g_idx),
        }
        if self.zero_bias:
            t["bias"] = f16(np.zeros(n_out))
        return t

    def decode(self, t, without=None):
        q = unpack(np.ascontiguousarray(t["qweight"].bits.T), 4).T
        zero = unpack(t["qzeros"].bits, 4) + (1 if self.version == 1 else 0)
        g_idx = t["g_idx"].bits
        if without and self.ordered:
            g_idx = np.sort(g_idx)
        elif without:
            zero = zero - 1
        return ((q - zero[g_idx]) * t["scales"].values[g_idx]).T


class Awq:
    lacks = "columns in order"

    def __init__(self, size):
        self.size = size

    def encode(self, w, rng):
        g_idx = np.arange(w.shape[1]) // self.size
        q, zero, scale = asymmetric(w, g_idx, g_idx[-1] + 1, False, 0)
        order = [0, 2, 4, 6, 1, 3, 5, 7]

        def shuffled(x):
            return x.reshape(len(x), -1, 8)[:, :, order].reshape(x.shape)

        return {"qweight": i32(pack(shuffled(q), 4)), "qzeros": i32(pack(shuffled(zero), 4)), "scales": scale}

    def decode(self, t, without=None):
        order = np.arange(8) if without else np.array([0, 4, 1, 5, 2, 6, 3, 7])

        def restored(bits):
            x = unpack(bits, 4)
            return x.reshape(len(x), -1, 8)[:, :, order].reshape(x.shape)

        zero, scale = (np.repeat(x, self.size, 0) for x in (restored(t["qzeros"].bits), t["scales"].values))
        return ((restored(t["qweight"].bits) - zero) * scale).T


# ---- configs as the tools write them ----


def compressed(form, weights, inputs=None, **changes):
    weights = dict(
        {
            "actorder": None,
            "block_structure": None,
            "dynamic": False,
            "group_size": None,
            "num_bits": 8,
            "observer": "minmax",
            "observer_kwargs": {},
            "strategy": "channel",
            "symmetric": True,
            "type": "int",
        },
        **weights,
    )
    group = {"input_activations": inputs, "output_activations": None, "targets": ["Linear"], "weights": weights}
    config = {
        "config_groups": {"group_0": group},
        "format": form,
        "global_compression_ratio": None,
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
    }
    return dict(config, **changes)


def activations(kind, strategy, dynamic):
    return {
        "actorder": None,
        "block_structure": None,
        "dynamic": dynamic,
        "group_size": None,
        "num_bits": 8,
        "observer": None if dynamic else "minmax",
        "observer_kwargs": {},
        "strategy": strategy,
        "symmetric": True,
        "type": kind,
    }


def gptq(**changes):
    return dict({"bits": 4, "damp_percent": 0.01, "desc_act": False, "group_size": 32, "quant_method": "gptq", "sym": True}, **changes)


def qwen_list(n_layers, *more):
    """Newer Qwen FP8 saves name every module that they left alone."""
    names = ["lm_head"]
    for i in range(n_layers):
        names += [f"model.layers.{i}.input_layernorm", f"model.layers.{i}.post_attention_layernorm"]
    return names + list(more)


def llama(quantization, **changes):
    keys = dict(model_type="llama", hidden_size=64, intermediate_size=96, quantization_config=quantization)
    return common("LlamaForCausalLM", **dict(keys, **changes))


def ministral3_nested(quantization):
    text = ministral3()[0]
    for key in ("architectures", "dtype", "transformers_version"):
        del text[key]
    return {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "dtype": "bfloat16",
        "image_token_index": 10,
        "model_type": "mistral3",
        "multimodal_projector_bias": False,
        "projector_hidden_act": "gelu",
        "quantization_config": quantization,
        "spatial_merge_size": 2,
        "text_config": text,
        "transformers_version": "5.0.0.dev0",
        "vision_config": {"head_dim": 8, "hidden_size": 16, "model_type": "pixtral", "num_hidden_layers": 1},
        "vision_feature_layer": -1,
    }


# ---- the miniatures: config, layout, modules left alone, source, notes ----


def miniatures():
    fp8_block = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}
    yield "llama-fp8-block", llama(fp8_block, hidden_size=48, head_dim=40, intermediate_size=136), Fp8Block(128, 128), (), (
        LLAMA + DEEPSEEK
    ), "FP8 as DeepSeek saves it: weight_scale_inv in float32 for blocks of 128 x 128, of which 160 and 136 leave parts. "

    left = ("model.layers.1.mlp.down_proj", "model.layers.0.self_attn.k_proj")
    small = dict(fp8_block, weight_block_size=[16, 32], modules_to_not_convert=qwen_list(2, *left))
    yield "llama-fp8-block_small", llama(small), Fp8Block(16, 32, bf16), left, (
        LLAMA + DEEPSEEK
    ), "FP8 as Qwen saves it: weight_scale_inv in bfloat16, modules_to_not_convert with two projections; blocks of 16 x 32. "

    static = {
        "activation_scheme": "static",
        "dequantize": False,
        "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"],
        "quant_method": "fp8",
        "weight_block_size": None,
    }
    yield "ministral3-fp8", ministral3_nested(static), Fp8Scaled("weight_scale_inv", (), bf16, "activation_scale"), (), (
        MINISTRAL_SOURCE
    ), "FP8 as Ministral 3 is published: scalar weight_scale_inv and activation_scale, in a model with images (text_config). "

    yield "llama-fp8-auto", llama(
        {"activation_scheme": "static", "ignored_layers": ["lm_head"], "quant_method": "fp8"}
    ), Fp8Scaled("weight_scale", (), f32, "input_scale"), (), (
        LLAMA + "neuralmagic/AutoFP8 README (checkpoint structure)"
    ), "FP8 as AutoFP8 saves it: scalar weight_scale and input_scale in float32. "

    weights = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    yield "llama-fp8-tensor", llama(
        compressed("float-quantized", weights, activations("float", "tensor", False))
    ), Fp8Scaled("weight_scale", (1,), bf16, "input_scale"), (), LLAMA + CT, "FP8, one scale a matrix, static activations. "

    weights = {"num_bits": 8, "type": "float", "strategy": "channel"}
    yield "llama-fp8-channel", llama(
        compressed("float-quantized", weights, activations("float", "token", True))
    ), Fp8Scaled("weight_scale", "rows", bf16), (), LLAMA + CT, "FP8, one scale a row, dynamic activations. "

    weights = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}
    yield "llama-fp8-ct_block", llama(
        compressed("float-quantized", weights, activations("float", "token", True)),
        hidden_size=48, head_dim=40, intermediate_size=136,
    ), Fp8Block(128, 128, bf16, "weight_scale"), (), LLAMA + CT, "FP8 in blocks of 128 x 128 as compressed-tensors. "

    yield "llama-ct-int8", llama(
        compressed("int-quantized", {}, activations("int", "token", True))
    ), CompressedInt(8, 0, False), (), LLAMA + CT, "int8, one scale a row (W8A8). "

    yield "llama-ct-int8_packed", llama(compressed("pack-quantized", {})), CompressedInt(8, 0, True), (), (
        LLAMA + CT
    ), "int8 packed four to an int32, one scale a row (W8A16). "

    left = ("model.layers.0.self_attn.o_proj",)
    yield "llama-ct-int8_group", llama(
        compressed("int-quantized", {"strategy": "group", "group_size": 32, "symmetric": False}, ignore=[*left, "lm_head"])
    ), CompressedInt(8, 32, False, symmetric=False), left, LLAMA + CT, "int8 in groups of 32 with int8 zero points; a projection is ignored. "

    weights = {"num_bits": 4, "strategy": "group", "group_size": 128}
    wide = dict(hidden_size=128, intermediate_size=256, num_key_value_heads=1, tie_word_embeddings=True)
    yield "llama-ct-int4", llama(compressed("pack-quantized", weights), **wide), CompressedInt(4, 128, True), (), (
        LLAMA + CT
    ), "int4 packed eight to an int32, symmetric groups of 128, tied. "

    weights = {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}
    newer = {"sparsity_config": {}, "transform_config": {}, "version": "0.12.2"}
    yield "llama-ct-int4_asym", llama(
        compressed("pack-quantized", weights, **newer)
    ), CompressedInt(4, 32, True, symmetric=False), (), LLAMA + CT, "int4 with zero points, packed along the rows; groups of 32. "

    weights = {"num_bits": 4, "strategy": "group", "group_size": 32, "actorder": "group"}
    yield "llama-ct-int4_gidx", llama(
        compressed("pack-quantized", weights)
    ), CompressedInt(4, 32, True, ordered=True), (), LLAMA + CT, "int4 whose columns belong to groups by weight_g_idx (actorder group). "

    weights = {"num_bits": 4, "strategy": "channel"}
    yield "llama-ct-int4_channel", llama(compressed("pack-quantized", weights)), CompressedInt(4, 0, True), (), (
        LLAMA + CT
    ), "int4, one scale a row. "

    older = gptq(model_file_base_name="model", model_name_or_path=None, true_sequential=True)
    yield "llama-gptq", llama(older, torch_dtype="float16"), Gptq(32, zero_bias=True), (), (
        LLAMA + GPTQ
    ), "GPTQ as AutoGPTQ saved it for long: no checkpoint_format, symmetric, and a bias of zeros for every projection. "

    meta = {"quantizer": ["gptqmodel:1.4.0"], "static_groups": False, "true_sequential": True}
    newer = gptq(checkpoint_format="gptq", desc_act=True, dynamic=None, lm_head=False, meta=meta, pack_dtype="int32", sym=False)
    yield "llama-gptq-desc_act", llama(newer, torch_dtype="float16"), Gptq(32, symmetric=False, ordered=True), (), (
        LLAMA + GPTQ
    ), "GPTQ with desc_act (g_idx out of order) and zero points, as GPTQModel saves it. "

    yield "llama-gptq-v2", llama(
        gptq(checkpoint_format="gptq_v2", group_size=-1, sym=False, meta=meta), torch_dtype="float16"
    ), Gptq(-1, symmetric=False, version=2), (), (
        LLAMA + GPTQ
    ), "GPTQ with zeros stored as they are (gptq_v2) and one group for all columns (group_size -1). "

    awq = {"bits": 4, "group_size": 32, "modules_to_not_convert": None, "quant_method": "awq", "version": "gemm", "zero_point": True}
    yield "llama-awq", llama(awq, torch_dtype="float16"), Awq(32), (), LLAMA + AWQ, "AWQ, groups of 32. "

    left = ("model.layers.0.self_attn.k_proj", "model.layers.1.self_attn.k_proj")
    yield "llama-awq-bias", llama(
        dict(awq, group_size=64, modules_to_not_convert=["k_proj"]), torch_dtype="float16", attention_bias=True, intermediate_size=128
    ), Awq(64), left, LLAMA + AWQ, "AWQ, groups of 64, biases, and k_proj left alone (modules_to_not_convert names a part). "


FLOAT64 = (
    "The reference dequantises the stored bits in float64 and does not quantise activations; the head and the embedding are not "
    "quantised; eos is ignored."
)


def quantise(config, seed, layout, left):
    """The stored tensors, what they mean, and what they would mean without the layout's speciality."""
    text = config.get("text_config", config)
    rng = np.random.default_rng([seed, 5])
    store = f16 if config.get("torch_dtype") == "float16" else bf16
    tensors, values, other = {}, {}, {}
    for name, t in llama_tensors(text, seed, store).items():
        module, ending = name.rsplit(".", 1)
        if module.endswith(PROJECTIONS) and ending == "weight" and module not in left:
            rows, columns = (np.exp(rng.normal(0, 0.4, n)) for n in t.values.shape)
            w = t.values * rows[:, None] * columns[None, :]
            parts = layout.encode(w, rng)
            assert np.abs(layout.decode(parts) - w).max() < 0.2 * np.abs(w).max(), module
            tensors.update({f"{module}.{part}": p for part, p in parts.items()})
            values[name], other[name] = layout.decode(parts), layout.decode(parts, layout.lacks)
        else:
            tensors[name] = t
            values[name] = other[name] = t.values
    if text is not config:
        tensors = {"language_model." + name: t for name, t in tensors.items()}
        tensors["vision_tower.patch_conv.weight"] = bf16(rng.normal(0, 1, (16, 3, 2, 2)))
        tensors["multi_modal_projector.linear_1.weight"] = bf16(rng.normal(0, 1, (text["hidden_size"], 16)))
    return tensors, values, other


def main(names):
    for name, config, layout, left, source, notes in miniatures():
        for seed in range(1, 100):
            if names and name not in names:
                break
            tensors, values, other = quantise(config, seed, layout, left)
            if write_miniature(
                os.path.join(HERE, name), config, tensors, values, notes + FLOAT64, source,
                "make_quantised.py", seed, {layout.lacks: (config, other)},
            ):
                break
        else:
            sys.exit(f"{name}: no seed will do")


if __name__ == "__main__":
    main(sys.argv[1:])
