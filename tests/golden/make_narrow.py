"""Writes the selection of families that the tree keeps: python3 make_narrow.py [NAME...]

The directories of ../shared/golden are F32 and too large to be kept all. For each that is chosen below,
this computes its logits in float64 from the family's original definition and stops where they are further
than 2e-6 of the largest from the stored ones, which agree with Hugging Face's own code. Then it cuts the
model narrow (fewer layers, a thinner feed-forward, BF16) and writes what the same definition makes of it.

The definitions are those of transformers' modeling_*.py that expected.json names as `source` (DeepSeek's own
modeling_deepseek.py for its softmax scale); they share nothing with the C code.
"""
import copy
import json
import math
import os
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True

import numpy as np

from make_reference import (
    Stored,
    bf16,
    f32,
    read_safetensors,
    rope_frequencies,
    silu,
    softmax,
    write_json,
    write_safetensors,
)

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.path.join(HERE, "..", "..", "..", "shared", "golden")

# ---- parts of models ----


def erf_gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def relu(x):
    return np.maximum(x, 0)


def relu2(x):
    return relu(x) ** 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "silu": silu,
    "gelu": erf_gelu,
    "gelu_new": tanh_gelu,
    "gelu_pytorch_tanh": tanh_gelu,
    "relu": relu,
    "relu2": relu2,
}


def rotate(x, angles, factor, pairs):
    """x [n, heads, dim]: the first 2 * angles.shape[1] of a head turn, neighbours or halves paired."""
    n_turned = 2 * angles.shape[1]
    cos, sin = np.cos(angles)[:, None] * factor, np.sin(angles)[:, None] * factor
    out = x.copy()
    half = n_turned // 2
    first = slice(0, n_turned, 2) if pairs else slice(0, half)
    second = slice(1, n_turned, 2) if pairs else slice(half, n_turned)
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
    return out


def bloom_slopes(n_heads):
    """build_alibi_tensor of modeling_bloom.py and modeling_falcon.py."""
    power = 2 ** math.floor(math.log2(n_heads))
    base = 2 ** -(2 ** -(math.log2(power) - 3))
    slopes = [base**i for i in range(1, power + 1)]
    extra = 2 ** -(2 ** -(math.log2(2 * power) - 3))
    return np.array(slopes + [extra**i for i in range(1, 2 * (n_heads - power), 2)])


def mpt_slopes(n_heads, bias_max):
    """build_mpt_alibi_tensor of modeling_mpt.py."""
    power = 2 ** math.ceil(math.log2(n_heads))
    slopes = 1 / 2 ** (np.arange(1, power + 1) * bias_max / power)
    if power != n_heads:
        slopes = np.concatenate([slopes[1::2], slopes[::2]])[:n_heads]
    return slopes


def xglm_positions(n, dim, offset):
    """XGLMSinusoidalPositionalEmbedding: the last frequency is 1 / 10000 itself."""
    freq = np.exp(np.arange(dim // 2) * -(math.log(10000) / (dim // 2 - 1)))
    angles = (np.arange(n) + offset)[:, None] * freq
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


def ctrl_positions(n, dim):
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, dim, 2) / dim)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


# ---- what each family is ----

DEFAULTS = {
    "layer": "model.layers.{}.",
    "embed": "model.embed_tokens",
    "norm": "rms",  # rms, rms1 (1 + weight), ln, ln1
    "eps": None,  # else the config's
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    "post1": None,  # norms of what a half gives
    "post2": None,
    "final": "model.norm",
    "final_eps": None,
    "flow": "sequential",  # parallel, outside (norm(x + f(x))), from_norm
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "fused": None,  # one tensor for all three, cut by `cut`
    "cut": None,
    "o": "self_attn.o_proj",
    "conv1d": False,  # matrices stored [in, out]
    "scale": None,  # of scores by layer, else head_dim ** -0.5
    "clip": None,
    "qk": None,  # (norm, name of q's, name of k's, "head" or "full")
    "qk_after_rope": False,
    "pairs": False,
    "rope": True,  # or by layer: None, or overrides of config keys
    "window": None,  # by layer
    "slopes": None,
    "slope_scale": 1.0,
    "cap": None,
    "mla": False,
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "gate_up": None,
    "act": None,  # else the config's
    "router": None,
    "choose": None,
    "experts": ("mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj", "mlp.experts.{}.down_proj"),
    "shared": None,
    "embed_scale": 1.0,
    "positions": None,
    "embed_norm": None,
    "residual": 1.0,
    "head": "lm_head",
    "head_bias": None,
    "transform": None,  # (dense, norm) in front of the head
    "logit_scale": 1.0,
    "final_cap": None,
}


def first(config, *keys):
    return next((config[k] for k in keys if config.get(k) is not None), None)


def sliding(c):
    return lambda i: c["sliding_window"] if c["layer_types"][i] == "sliding_attention" else None


def every_layer(c):
    return lambda i: c.get("sliding_window")


def embed_scale(c):
    """sqrt(hidden_size), rounded where the embedding is bfloat16."""
    scale = math.sqrt(c["hidden_size"])
    return float(bf16(scale).values) if first(c, "dtype", "torch_dtype") == "bfloat16" else scale


def gemma(c, **changes):
    gelu = {"norm": "rms1", "act": "gelu_pytorch_tanh", "embed_scale": embed_scale(c)}
    return {**gelu, **changes}


BOTH = {
    "post1": "post_attention_layernorm",
    "norm2": "pre_feedforward_layernorm",
    "post2": "post_feedforward_layernorm",
}
AFTER = {
    "norm1": None,
    "post1": "post_attention_layernorm",
    "norm2": None,
    "post2": "post_feedforward_layernorm",
}


def gemma2(c):
    scale = c["query_pre_attn_scalar"] ** -0.5
    return gemma(
        c,
        **BOTH,
        scale=lambda i: scale,
        window=lambda i: c["sliding_window"] if i % 2 == 0 else None,
        cap=c["attn_logit_softcapping"],
        final_cap=c["final_logit_softcapping"],
    )


def gemma3(c):
    pattern, scale = c.get("sliding_window_pattern", 6), c["query_pre_attn_scalar"] ** -0.5

    def local(i):
        return c["layer_types"][i] == "sliding_attention" if "layer_types" in c else (i + 1) % pattern != 0

    def rope(i):
        if "rope_parameters" in c:
            kind = "sliding_attention" if local(i) else "full_attention"
            return {"rope_parameters": c["rope_parameters"][kind]}
        if local(i):
            return {"rope_theta": c.get("rope_local_base_freq", 10000.0), "rope_scaling": None}
        return {"rope_theta": c.get("rope_theta", 1000000.0)}

    return gemma(
        c,
        **BOTH,
        scale=lambda i: scale,
        window=lambda i: c["sliding_window"] if local(i) else None,
        rope=rope,
        qk=("rms1", "self_attn.q_norm", "self_attn.k_norm", "head"),
    )


def cohere(c):
    qk = ("ln", "self_attn.q_norm", "self_attn.k_norm", "head") if c.get("use_qk_norm") else None
    return {"norm": "ln", "flow": "parallel", "norm2": "input_layernorm", "pairs": True, "qk": qk,
            "logit_scale": c["logit_scale"]}


def cohere2(c):
    def local(i):
        return (i + 1) % c["sliding_window_pattern"] != 0

    changes = {"window": lambda i: c["sliding_window"] if local(i) else None,
               "rope": lambda i: {} if local(i) else None}
    return {**cohere(c), **changes}


def classic(prefix, layer, **changes):
    names = {"norm": "ln", "layer": prefix + layer, "gate": None}
    return {**names, **changes}


def prefix_of(t, prefix, name):
    """Hub checkpoints of a base model leave the prefix away."""
    return prefix if prefix + name in t else ""


def gpt2(c, t, conv1d=True):
    p = prefix_of(t, "transformer.", "wte.weight")
    width = c["n_embd"]
    scale = (width // c["n_head"]) ** -0.5 if c.get("scale_attn_weights", True) else 1.0
    inverse = c.get("scale_attn_by_inverse_layer_idx")
    return classic(
        p, "h.{}.", embed=p + "wte", norm1="ln_1", norm2="ln_2", final=p + "ln_f", fused="attn.c_attn", cut="blocks",
        o="attn.c_proj", up="mlp.c_fc", down="mlp.c_proj", conv1d=conv1d, rope=None, positions=t[p + "wpe.weight"],
        scale=lambda i: scale / (i + 1) if inverse else scale,
    )


def gpt_bigcode(c, t):
    cut = {"cut": "blocks", "kv": 1} if c["multi_query"] else {"cut": "groups"}
    return {**gpt2(c, t, False), **cut}


def openai_gpt(c, t):
    p = prefix_of(t, "transformer.", "tokens_embed.weight")
    return classic(
        p, "h.{}.", embed=p + "tokens_embed", norm1="ln_1", norm2="ln_2", final=None, flow="outside", act="gelu_new",
        fused="attn.c_attn", cut="blocks", o="attn.c_proj", up="mlp.c_fc", down="mlp.c_proj", conv1d=True, rope=None,
        positions=t[p + "positions_embed.weight"],
    )


def gpt_neo(c, t):
    kinds = [kind for kinds, times in c["attention_types"] for kind in kinds * times]
    return classic(
        "transformer.", "h.{}.", embed="transformer.wte", norm1="ln_1", norm2="ln_2", final="transformer.ln_f",
        q="attn.attention.q_proj", k="attn.attention.k_proj", v="attn.attention.v_proj", o="attn.attention.out_proj",
        up="mlp.c_fc", down="mlp.c_proj", rope=None, positions=t["transformer.wpe.weight"], scale=lambda i: 1.0,
        window=lambda i: c["window_size"] if kinds[i] == "local" else None,
    )


def gpt_neox(c, t):
    return classic(
        "gpt_neox.", "layers.{}.", embed="gpt_neox.embed_in", final="gpt_neox.final_layer_norm", head="embed_out",
        fused="attention.query_key_value", cut="groups", o="attention.dense", up="mlp.dense_h_to_4h",
        down="mlp.dense_4h_to_h", flow="parallel" if c["use_parallel_residual"] else "sequential",
        rope=lambda i: {} if "rope_parameters" in c else
        {"rope_theta": c["rotary_emb_base"], "partial_rotary_factor": c["rotary_pct"]},
    )


def gptj(c, t):
    head_dim = c["n_embd"] // c["n_head"]
    return classic(
        "transformer.", "h.{}.", embed="transformer.wte", norm1="ln_1", norm2="ln_1", final="transformer.ln_f",
        q="attn.q_proj", k="attn.k_proj", v="attn.v_proj", o="attn.out_proj", up="mlp.fc_in", down="mlp.fc_out",
        flow="parallel", pairs=True, rope=lambda i: {"partial_rotary_factor": c["rotary_dim"] / head_dim},
    )


def codegen(c, t):
    return {**gptj(c, t), "fused": "attn.qkv_proj", "cut": "codegen"}


def bloom(c, t):
    p = prefix_of(t, "transformer.", "word_embeddings.weight")
    return classic(
        p, "h.{}.", embed=p + "word_embeddings", embed_norm=p + "word_embeddings_layernorm", final=p + "ln_f",
        fused="self_attention.query_key_value", cut="groups", o="self_attention.dense", up="mlp.dense_h_to_4h",
        down="mlp.dense_4h_to_h", act="gelu_new", rope=None,
        slopes=bloom_slopes(first(c, "n_head", "num_attention_heads")),
        flow="from_norm" if c["apply_residual_connection_post_layernorm"] else "sequential",
    )


def falcon(c, t):
    p, heads = "transformer.", first(c, "num_attention_heads", "n_head")
    new = c.get("new_decoder_architecture", "n_head_kv" in c)
    two = new and c.get("num_ln_in_parallel_attn", 2) == 2
    parallel = new or c["parallel_attn"]
    names = {"norm1": "ln_attn", "norm2": "ln_mlp"} if two else {"norm2": "input_layernorm"} if parallel else {}
    kv = first(c, "num_kv_heads", "n_head_kv") if new else 1 if c["multi_query"] else heads
    return classic(
        p, "h.{}.", embed=p + "word_embeddings", final=p + "ln_f", fused="self_attention.query_key_value",
        cut="groups" if new or not c["multi_query"] else "blocks", kv=kv, o="self_attention.dense",
        up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h", act=c.get("activation", "gelu"),
        flow="parallel" if parallel else "sequential", rope=None if c["alibi"] else True,
        slopes=bloom_slopes(heads) if c["alibi"] else None, slope_scale=(c["hidden_size"] // heads) ** -0.5, **names,
    )


def mpt(c, t):
    a = c["attn_config"]
    return classic(
        "transformer.", "blocks.{}.", embed="transformer.wte", norm1="norm_1", norm2="norm_2", eps=1e-5,
        final="transformer.norm_f", fused="attn.Wqkv", cut="blocks", clip=a["clip_qkv"], o="attn.out_proj",
        up="ffn.up_proj", down="ffn.down_proj", act="gelu", rope=None,
        slopes=mpt_slopes(c["n_heads"], a["alibi_bias_max"]),
    )


def bart_like(p, **changes):
    names = {
        "embed": p + "embed_tokens", "norm1": "self_attn_layer_norm", "norm2": "final_layer_norm", "eps": 1e-5,
        "final": p + "layer_norm", "o": "self_attn.out_proj", "up": "fc1", "down": "fc2", "rope": None,
    }
    return classic(p, "layers.{}.", **{**names, **changes})


def opt(c, t):
    p = prefix_of(t, "model.", "decoder.embed_tokens.weight") + "decoder."
    before = c["do_layer_norm_before"]
    return bart_like(
        p, final=p + "final_layer_norm" if before else None, flow="sequential" if before else "outside",
        positions=t[p + "embed_positions.weight"][2:], project=p,
    )


def biogpt(c, t):
    p = "biogpt."
    return bart_like(p, embed_scale=math.sqrt(c["hidden_size"]), positions=t[p + "embed_positions.weight"][2:])


def xglm(c, t):
    return bart_like("model.", embed_scale=math.sqrt(c["d_model"]), positions=xglm_positions(64, c["d_model"], 2))


def ctrl(c, t):
    p, width = "transformer.", c["n_embd"]
    return classic(
        p, "h.{}.", embed=p + "w", norm1="layernorm1", norm2="layernorm2", eps=1e-6, final=p + "layernorm",
        final_eps=c["layer_norm_epsilon"], q="multi_head_attention.Wq", k="multi_head_attention.Wk",
        v="multi_head_attention.Wv", o="multi_head_attention.dense", up="ffn.0", down="ffn.2", act="relu", rope=None,
        embed_scale=math.sqrt(width), positions=ctrl_positions(128, width), head_bias="lm_head.bias",
    )


def bert(p, offset, t, **head):
    e = p + "embeddings."
    return classic(
        p, "encoder.layer.{}.", embed=e + "word_embeddings", norm1="attention.output.LayerNorm",
        norm2="output.LayerNorm", final=None, flow="outside", q="attention.self.query", k="attention.self.key",
        v="attention.self.value", o="attention.output.dense", up="intermediate.dense", down="output.dense", rope=None,
        positions=t[e + "position_embeddings.weight"][offset:] + t[e + "token_type_embeddings.weight"][0],
        embed_norm=e + "LayerNorm", **head,
    )


def phi(c, t):
    return classic(
        "model.", "layers.{}.", norm2="input_layernorm", flow="parallel", final="model.final_layernorm",
        o="self_attn.dense", up="mlp.fc1", down="mlp.fc2",
    )


def phi3(c, t):
    return {"fused": "self_attn.qkv_proj", "cut": "blocks", "gate_up": "mlp.gate_up_proj", "window": every_layer(c)}


def stablelm(c, t):
    parallel = {"flow": "parallel", "norm2": "input_layernorm"} if c["use_parallel_residual"] else {}
    qk = ("ln", "self_attn.q_layernorm", "self_attn.k_layernorm", "head") if c["qk_layernorm"] else None
    return {"norm": "ln", "qk": qk, **parallel}


def granite(c, t):
    return {
        "embed_scale": c["embedding_multiplier"], "residual": c["residual_multiplier"],
        "scale": lambda i: c["attention_multiplier"], "logit_scale": 1 / c["logits_scaling"],
    }


def granitemoe(c, t):
    p = "block_sparse_moe."
    fused = (p + "input_linear", p + "output_linear")
    return {**granite(c, t), "router": p + "router.layer", "choose": "softmax_chosen", "experts": fused}


def hunyuan(c, t):
    """HunYuanDenseV1RotaryEmbedding: dynamic with alpha stretches the base once for all."""
    def rope(i):
        stretch = c["rope_scaling"]["alpha"] ** (c["head_dim"] / (c["head_dim"] - 2))
        return {"rope_theta": c["rope_theta"] * stretch, "rope_scaling": None}

    qk = ("rms", "self_attn.query_layernorm", "self_attn.key_layernorm", "head")
    return {"rope": rope, "qk": qk, "qk_after_rope": True}


def exaone4(c, t):
    local = sliding(c)
    everywhere = c["sliding_window"] is None
    return {**AFTER, "qk": QK_HEAD, "window": local, "rope": lambda i: {} if everywhere or local(i) else None}


def deepseek(c, t):
    choose = "grouped_sigmoid" if c["scoring_func"] == "sigmoid" else "grouped_softmax"
    return {"mla": True, "pairs": True, "router": "mlp.gate", "choose": choose, "shared": "mlp.shared_experts"}


def qwen2(c, t):
    def window(i):
        return c["sliding_window"] if c.get("use_sliding_window") and i >= c["max_window_layers"] else None

    return {"window": window}


QK_HEAD = ("rms", "self_attn.q_norm", "self_attn.k_norm", "head")
QK_FULL = ("rms", "self_attn.q_norm", "self_attn.k_norm", "full")
MIXTRAL = tuple("block_sparse_moe.experts.{}." + w for w in ("w1", "w3", "w2"))

FAMILIES = {
    "llama": lambda c, t: {},
    "mistral": lambda c, t: {"window": every_layer(c)},
    "qwen2": qwen2,
    "qwen3": lambda c, t: {**qwen2(c, t), "qk": QK_HEAD},
    "arcee": lambda c, t: {"gate": None},
    "seed_oss": lambda c, t: {},
    "ernie4_5": lambda c, t: {"pairs": True},
    "smollm3": lambda c, t: {"rope": lambda i: {} if c["no_rope_layers"][i] else None},
    "olmo": lambda c, t: {"norm": "ln", "eps": 1e-5, "clip": c["clip_qkv"]},
    "olmo2": lambda c, t: {**AFTER, "qk": QK_FULL},
    "olmo3": lambda c, t: {**AFTER, "qk": QK_FULL, "window": sliding(c)},
    "exaone4": exaone4,
    "glm": lambda c, t: {"pairs": True, "gate_up": "mlp.gate_up_proj"},
    "glm4": lambda c, t: {"pairs": True, "gate_up": "mlp.gate_up_proj", "post1": "post_self_attn_layernorm",
                          "post2": "post_mlp_layernorm"},
    "granite": granite,
    "hunyuan_v1_dense": hunyuan,
    "nemotron": lambda c, t: {"norm": "ln1", "gate": None},
    "stablelm": stablelm,
    "starcoder2": lambda c, t: {"norm": "ln", "gate": None, "up": "mlp.c_fc", "down": "mlp.c_proj",
                                "window": every_layer(c)},
    "cohere": lambda c, t: cohere(c),
    "cohere2": lambda c, t: cohere2(c),
    "gemma": lambda c, t: gemma(c),
    "gemma2": lambda c, t: gemma2(c),
    "gemma3_text": lambda c, t: gemma3(c),
    "phi3": phi3,
    "mixtral": lambda c, t: {"router": "block_sparse_moe.gate", "choose": "softmax_chosen", "experts": MIXTRAL,
                             "window": every_layer(c)},
    "qwen2_moe": lambda c, t: {**qwen2(c, t), "router": "mlp.gate", "choose": "softmax", "shared": "mlp.shared_expert"},
    "qwen3_moe": lambda c, t: {"qk": QK_HEAD, "router": "mlp.gate", "choose": "softmax"},
    "olmoe": lambda c, t: {"qk": QK_FULL, "router": "mlp.gate", "choose": "softmax", "clip": c["clip_qkv"]},
    "granitemoe": granitemoe,
    "glm4_moe": lambda c, t: {"qk": QK_HEAD, "router": "mlp.gate", "choose": "grouped_sigmoid",
                              "shared": "mlp.shared_experts"},
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "openai-gpt": openai_gpt,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gptj": gptj,
    "codegen": codegen,
    "bloom": bloom,
    "falcon": falcon,
    "RefinedWeb": falcon,
    "mpt": mpt,
    "opt": opt,
    "biogpt": biogpt,
    "xglm": xglm,
    "ctrl": ctrl,
    "phi": phi,
    "bert": lambda c, t: bert("bert.", 0, t, head_bias="cls.predictions.bias",
                              transform=("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")),
    "roberta": lambda c, t: bert("roberta.", c["pad_token_id"] + 1, t, head_bias="lm_head.bias",
                                 transform=("lm_head.dense", "lm_head.layer_norm")),
}

# ---- one decoder that obeys them ----


class Decoder:
    """Whole texts without a cache, in float64."""

    def __init__(self, config, tensors):
        c = self.c = config
        self.t = t = {name.removeprefix("language_model."): value for name, value in tensors.items()}
        d = self.d = {**DEFAULTS, **FAMILIES[c["model_type"]](c, t)}
        self.n_layers = first(c, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
        self.n_heads = first(c, "num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")
        self.hidden = first(c, "hidden_size", "n_embd", "n_embed", "d_model")
        self.head_dim = c.get("head_dim") or self.hidden // self.n_heads
        self.n_kv = d.get("kv") or c.get("num_key_value_heads") or self.n_heads
        keys = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon")
        self.eps = d["eps"] or first(c, *keys) or 1e-6
        named = first(c, "hidden_act", "activation_function", "afn", "hidden_activation")
        self.act = ACTIVATIONS[d["act"] or named]
        self.router_margin = math.inf

    def matrix(self, name):
        w = self.t[name + ".weight"]
        return w.T if self.d["conv1d"] else w

    def linear(self, name, x):
        y = x @ self.matrix(name).T
        return y + self.t[name + ".bias"] if name + ".bias" in self.t else y

    def normalise(self, kind, x, eps):
        if kind.startswith("ln"):
            x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)

    def norm(self, name, x, kind=None, eps=None):
        if name is None:
            return x
        kind = kind or self.d["norm"]
        y = self.normalise(kind, x, eps or self.eps)
        if name + ".weight" in self.t:
            y = y * (self.t[name + ".weight"] + (1 if kind.endswith("1") else 0))
        elif name + ".norms.0.weight" in self.t:
            y = y * np.stack([self.t[f"{name}.norms.{i}.weight"] for i in range(x.shape[-2])])
        return y + self.t[name + ".bias"] if name + ".bias" in self.t else y

    def embed(self, ids):
        d = self.d
        x = self.t[d["embed"] + ".weight"][ids] * d["embed_scale"]
        project = str(d.get("project")) + "project_in"
        if project + ".weight" in self.t:
            x = self.linear(project, x)
        if d["positions"] is not None:
            x = x + d["positions"][: len(ids)]
        return self.norm(d["embed_norm"], x)

    def fused_heads(self, x):
        """q, k, v [n, heads, head_dim] of one product x."""
        n, dim, cut = len(x), self.head_dim, self.d["cut"]
        if cut == "blocks":
            q, k, v = np.split(x, [self.n_heads * dim, (self.n_heads + self.n_kv) * dim], 1)
        elif cut == "codegen":  # four groups of [q v k]
            q, v, k = np.split(x.reshape(n, 4, -1), 3, 2)
        else:
            q, k, v = np.split(x.reshape(n, self.n_kv, -1, dim), [-2, -1], 2)
        return q.reshape(n, -1, dim), k.reshape(n, -1, dim), v.reshape(n, -1, dim)

    def query_key_norm(self, p, q, k):
        if self.d["qk"] is None:
            return q, k
        kind, q_name, k_name, extent = self.d["qk"]
        out = []
        for name, x in ((q_name, q), (k_name, k)):
            shape = x.shape
            x = x.reshape(len(x), -1) if extent == "full" else x
            out.append(self.norm(p + name, x, kind).reshape(shape) if p + name + ".weight" in self.t
                       or p + name + ".norms.0.weight" in self.t else x)
        return out

    def turn(self, i, n, *tensors):
        rope = self.d["rope"]
        rope = rope(i) if callable(rope) else ({} if rope else None)
        if rope is None:
            return tensors
        c = {**self.c, **rope}
        c.setdefault("max_position_embeddings", 2048)
        dim = tensors[0].shape[-1]
        inv_freq, factor = rope_frequencies(c, dim, n)
        angles = np.arange(n)[:, None] * inv_freq
        return [rotate(x, angles, factor, self.d["pairs"]) for x in tensors]

    def heads(self, i, p, x):
        d, dim = self.d, self.head_dim
        if d["mla"]:
            return self.latent_heads(i, p, x)
        if d["fused"]:
            product = self.linear(p + d["fused"], x)
            product = np.clip(product, -d["clip"], d["clip"]) if d["clip"] else product
            q, k, v = self.fused_heads(product)
        else:
            q, k, v = [self.linear(p + d[name], x).reshape(len(x), -1, dim) for name in "qkv"]
        if not d["qk_after_rope"]:
            q, k = self.query_key_norm(p, q, k)
        if d["clip"] and not d["fused"]:  # OlmoeAttention: behind the norms
            q, k, v = [np.clip(y, -d["clip"], d["clip"]) for y in (q, k, v)]
        q, k = self.turn(i, len(x), q, k)
        if d["qk_after_rope"]:
            q, k = self.query_key_norm(p, q, k)
        return q, k, v

    def latent_heads(self, i, p, x):
        """DeepseekV3Attention: the part with rope of every key is shared by the heads."""
        c, a, n = self.c, p + "self_attn.", len(x)
        nope, turned, rank = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["kv_lora_rank"]
        if c["q_lora_rank"]:
            x_q = self.norm(a + "q_a_layernorm", self.linear(a + "q_a_proj", x), "rms", 1e-6)
            q = self.linear(a + "q_b_proj", x_q)
        else:
            q = self.linear(a + "q_proj", x)
        q = q.reshape(n, self.n_heads, nope + turned)
        latent = self.linear(a + "kv_a_proj_with_mqa", x)
        kv = self.linear(a + "kv_b_proj", self.norm(a + "kv_a_layernorm", latent[:, :rank], "rms", 1e-6))
        kv = kv.reshape(n, self.n_heads, nope + c["v_head_dim"])
        q_turned, k_turned = self.turn(i, n, q[..., nope:], latent[:, None, rank:])
        q = np.concatenate([q[..., :nope], q_turned], -1)
        k = np.concatenate([kv[..., :nope], np.repeat(k_turned, self.n_heads, 1)], -1)
        return q, k, kv[..., nope:]

    def score_scale(self, i, dim):
        if self.d["scale"]:
            return self.d["scale"](i)
        scale, scaling = dim**-0.5, self.c.get("rope_scaling") or {}
        if self.d["mla"] and scaling.get("mscale_all_dim"):  # modeling_deepseek.py: yarn_get_mscale
            scale *= (0.1 * scaling["mscale_all_dim"] * math.log(scaling["factor"]) + 1) ** 2
        return scale

    def attention(self, i, p, x):
        d, n = self.d, len(x)
        q, k, v = self.heads(i, p, x)
        group = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) * self.score_scale(i, q.shape[-1])
        if d["cap"]:
            scores = np.tanh(scores / d["cap"]) * d["cap"]
        if d["slopes"] is not None:
            scores = scores + d["slope_scale"] * d["slopes"][:, None, None] * np.arange(n)
        distance = np.arange(n)[:, None] - np.arange(n)
        window = d["window"](i) if d["window"] else None
        weights = softmax(np.where((distance >= 0) & (distance < (window or n)), scores, -np.inf))
        return self.linear(p + d["o"], np.einsum("hqk,khd->qhd", weights, v).reshape(n, -1))

    def gated(self, gate, up, down, x):
        return self.linear(down, self.act(self.linear(gate, x)) * self.linear(up, x))

    def ffn(self, p, x):
        d = self.d
        if d["router"] and p + d["router"] + ".weight" in self.t:
            return self.mixture(p, x)
        if d["gate_up"]:
            gate, up = np.split(self.linear(p + d["gate_up"], x), 2, -1)
            return self.linear(p + d["down"], self.act(gate) * up)
        if d["gate"]:
            return self.gated(p + d["gate"], p + d["up"], p + d["down"], x)
        return self.linear(p + d["down"], self.act(self.linear(p + d["up"], x)))

    def best(self, scores, k):
        """The k largest of each row, and how close the next one is."""
        order = np.argsort(-scores, -1, "stable")
        sorted_scores = np.take_along_axis(scores, order, -1)
        if k < scores.shape[-1]:
            self.router_margin = min(self.router_margin, (sorted_scores[:, k - 1] - sorted_scores[:, k]).min())
        return order[:, :k]

    def limit_groups(self, scores, by_two):
        """-inf for the experts of groups that are not among the best topk_group."""
        n, n_group = len(scores), self.c["n_group"]
        if n_group in (None, 1) or self.c.get("topk_method") == "greedy":
            return scores
        groups = scores.reshape(n, n_group, -1)
        of_group = np.sort(groups, -1)[..., -2:].sum(-1) if by_two else groups.max(-1)
        chosen = np.zeros((n, n_group), bool)
        np.put_along_axis(chosen, self.best(of_group, self.c["topk_group"]), True, -1)
        return np.where(chosen[..., None], groups, -np.inf).reshape(n, -1)

    def route(self, p, logits):
        """Experts and weights [n, k]."""
        c, choose, k = self.c, self.d["choose"], self.c["num_experts_per_tok"]
        if choose == "softmax_chosen":
            experts = self.best(logits, k)
            return experts, softmax(np.take_along_axis(logits, experts, -1))
        scores = sigmoid(logits) if choose == "grouped_sigmoid" else softmax(logits)
        ranks = scores
        if choose == "grouped_sigmoid":
            ranks = self.limit_groups(scores + self.t[p + self.d["router"] + ".e_score_correction_bias"], True)
        elif choose == "grouped_softmax":
            ranks = self.limit_groups(scores, False)
        experts = self.best(ranks, k)
        weights = np.take_along_axis(scores, experts, -1)
        if c["norm_topk_prob"]:
            weights = weights / (weights.sum(-1, keepdims=True) + 1e-20)
        return experts, weights * c.get("routed_scaling_factor", 1.0)

    def expert(self, p, e, x):
        names = self.d["experts"]
        if len(names) == 3:
            return self.gated(*(p + name.format(e) for name in names), x)
        gate, up = np.split(x @ self.t[p + names[0] + ".weight"][e].T, 2, -1)
        return (self.act(gate) * up) @ self.t[p + names[1] + ".weight"][e].T

    def mixture(self, p, x):
        logits = self.linear(p + self.d["router"], x)
        experts, weights = self.route(p, logits)
        dense = np.zeros_like(logits)
        np.put_along_axis(dense, experts, weights, -1)
        out = sum(dense[:, e : e + 1] * self.expert(p, e, x) for e in range(logits.shape[-1]))
        shared = self.d["shared"]
        if shared:
            y = self.gated(*(f"{p}{shared}.{name}_proj" for name in ("gate", "up", "down")), x)
            switch = p + shared + "_gate"
            out = out + (sigmoid(self.linear(switch, x)) * y if switch + ".weight" in self.t else y)
        return out

    def block(self, i, x):
        d, p = self.d, self.d["layer"].format(i)
        norm1, norm2 = [p + d[name] if d[name] else None for name in ("norm1", "norm2")]
        post1, post2 = [p + d[name] if d[name] else None for name in ("post1", "post2")]
        if d["flow"] == "parallel":
            return x + self.attention(i, p, self.norm(norm1, x)) + self.ffn(p, self.norm(norm2, x))
        if d["flow"] == "outside":
            x = self.norm(norm1, x + self.attention(i, p, x))
            return self.norm(norm2, x + self.ffn(p, x))
        h = self.norm(norm1, x)
        x = (h if d["flow"] == "from_norm" else x) + d["residual"] * self.norm(post1, self.attention(i, p, h))
        h = self.norm(norm2, x)
        return (h if d["flow"] == "from_norm" else x) + d["residual"] * self.norm(post2, self.ffn(p, h))

    def logits(self, x):
        d = self.d
        x = self.norm(d["final"], x, eps=d["final_eps"])
        project = str(d.get("project")) + "project_out"
        if project + ".weight" in self.t:
            x = self.linear(project, x)
        if d["transform"]:
            x = self.norm(d["transform"][1], self.act(self.linear(d["transform"][0], x)))
        tied = d["head"] + ".weight" not in self.t
        y = x @ self.t[(d["embed"] if tied else d["head"]) + ".weight"].T
        bias = d["head_bias"] or d["head"] + ".bias"
        y = (y + self.t[bias] if bias in self.t else y) * d["logit_scale"]
        return np.tanh(y / d["final_cap"]) * d["final_cap"] if d["final_cap"] else y

    def forward(self, ids):
        x = self.embed(np.array(ids))
        for i in range(self.n_layers):
            x = self.block(i, x)
        return self.logits(x)

    def greedy(self, prompt, n):
        """The n most probable ids, each fed back, and the smallest margin over the second best."""
        ids, margin = [], math.inf
        for _ in range(n):
            last = self.forward(prompt + ids)[-1]
            second, best = np.sort(last)[-2:]
            ids.append(int(last.argmax()))
            margin = min(margin, float(best - second))
        return ids, margin


# ---- the narrow form ----

LAYERS_KEYS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
WIDTH_KEYS = ("intermediate_size", "n_inner", "ffn_dim", "dff", "ffn_hidden_size")


def keep_layers(config, d, tensors, keep):
    """Leaves the layers `keep` away from all others; what lies behind the last (deepseek_v3) follows."""
    key = next(k for k in LAYERS_KEYS if k in config)
    n = config[key]
    place = {old: new for new, old in enumerate(keep)}
    pattern = re.compile("(.*" + re.escape(d["layer"]).replace(r"\{\}", r")(\d+)(") + ".*)")
    out = {}
    for name, values in tensors.items():
        match = pattern.fullmatch(name)
        if not match:
            out[name] = values
            continue
        old = int(match[2])
        new = place.get(old) if old < n else old - n + len(keep)
        if new is not None:
            out[match[1] + str(new) + match[3]] = values
    config[key] = len(keep)
    for name in ("layer_types", "no_rope_layers", "attention_layers"):
        if name in config:
            config[name] = [config[name][i] for i in keep]
    if "attention_types" in config:
        config["attention_types"] = [[config["attention_layers"], 1]]
    return out


def cut_rows(tensors, name, old, n, axis, parts=1):
    """The first n of an axis of `parts` parts of `old` rows each."""
    if name in tensors:
        assert tensors[name].shape[axis] == parts * old, name
        pieces = np.split(tensors[name], parts, axis)
        tensors[name] = np.concatenate([np.take(piece, range(n), axis) for piece in pieces], axis)


def keep_width(config, d, tensors, width, keys, names):
    """Cuts the feed-forwards of these names, [gate,] up and down, to their first `width` rows; down grows by
    about as much as the sum over fewer shrinks."""
    *inner, down = names
    rows, columns = (1, 0) if d["conv1d"] else (0, 1)
    prefix = re.compile("(?:.*[.])?" + re.escape(d["layer"]).replace(r"\{\}", r"\d+"))
    for name in list(tensors):
        match = prefix.match(name)
        if match and re.fullmatch(re.escape(down).replace(r"\{\}", r"\d+") + r"\.weight", name[match.end() :]):
            old = tensors[name].shape[columns]
            number = re.search(r"experts\.(\d+)", name)
            for other in inner:
                parts = 2 if other == d["gate_up"] else 1
                full = match[0] + (other.format(number[1]) if number else other)
                cut_rows(tensors, full + ".weight", old, width, rows, parts)
                cut_rows(tensors, full + ".bias", old, width, 0, parts)
            cut_rows(tensors, name, old, width, columns)
            tensors[name] = tensors[name] * 2.0 ** round(math.log2(old / width) / 2)
    key = next(k for k in keys if config.get(k) or len(keys) == 1)
    config[key] = width // config["d_model"] if key == "expansion_ratio" else width


def keep_vocab(config, d, tensors, n):
    old, config["vocab_size"] = config["vocab_size"], n
    for name in list(tensors):
        if name.endswith((d["embed"] + ".weight", d["head"] + ".weight", d["head_bias"] or d["head"] + ".bias")):
            cut_rows(tensors, name, old, n, 0)


def read_masks(path):
    """The U8 tensors, which no computation reads."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    masks = {}
    for name, t in header.items():
        if name != "__metadata__" and t["dtype"] == "U8":
            masks[name] = np.frombuffer(data[slice(*t["data_offsets"])], np.uint8).reshape(t["shape"])
    return masks


def stored(name, values):
    """Matrices and vectors in BF16; what checkpoints hold in F32 all the same stays."""
    if values.dtype == np.uint8:
        return Stored(values, "U8")
    keep = ("e_score_correction_bias", "inv_freq", "masked_bias")
    return f32(values) if name.endswith(keep) else bf16(values)


def floats(tensors):
    return {name: t.values for name, t in tensors.items() if t.dtype != "U8"}


def set_dtype(config, dtype):
    for key in ("torch_dtype", "dtype"):
        if key in config:
            config[key] = dtype


def text_of(config):
    """The text model's config; its dtype is the whole's."""
    inherited = {k: config[k] for k in ("dtype", "torch_dtype") if k in config}
    return {**inherited, **config["text_config"]} if "text_config" in config else config


def verify(directory, config, expected, tensors):
    """The largest difference from the stored logits, as a part of the largest logit."""
    model, worst, largest = Decoder(text_of(config), tensors), 0.0, 0.0
    for sequence in expected["sequences"]:
        reference = np.fromfile(os.path.join(directory, sequence["logits_f32_file"]), "<f4")
        worst = max(worst, float(np.abs(model.forward(sequence["ids"]).ravel() - reference).max()))
        largest = max(largest, float(np.abs(reference).max()))
    greedy = expected["greedy"]
    ids, _ = model.greedy(greedy["prompt"], len(greedy["ids"]))
    if worst > 2e-6 * largest or ids != greedy["ids"]:
        same = "equal" if ids == greedy["ids"] else "DIFFERENT"
        sys.exit(f"{directory}: off by {worst:g} of {largest:g}, greedy ids {same}")
    return worst / largest


def other_gelu(model, ids, logits):
    """How far the other form of GELU moves the logits, as a part of the largest."""
    act = model.act
    if act not in (erf_gelu, tanh_gelu):
        return None
    model.act = tanh_gelu if act is erf_gelu else erf_gelu
    moved = np.abs(model.forward(ids) - logits).max() / np.abs(logits).max()
    model.act = act
    return float(f"{moved:.1e}")


def expected_of(name, expected, model, error, cut):
    """What the narrow model gives; None where a choice of an id or of an expert is a close one, or where the
    other form of GELU would hide in the tolerance."""
    sequences, logits = expected["sequences"], [model.forward(s["ids"]) for s in expected["sequences"]]
    prompt = expected["greedy"]["prompt"]
    ids, margin = model.greedy(prompt, len(expected["greedy"]["ids"]))
    gelu = other_gelu(model, sequences[-1]["ids"], logits[-1])
    if margin < 0.005 or model.router_margin < 5e-4 or len(set(ids)) < 3 or (gelu or 1) < 1.5e-4:
        return None
    full = {"reproduced_within": float(f"{error:.1e}")}
    for key in ("max_abs_a_vs_hf", "max_abs_a_vs_hf5", "max_change_of_logits_if", "sensitivity"):
        if expected.get(key) is not None:
            full[key] = expected[key]
    return logits, {
        "kind": "causal-lm",
        "family": expected["family"],
        "variant": name,
        "sequences": sequences,
        "greedy": {"prompt": prompt, "ids": ids},
        "source": expected["source"],
        "notes": expected["notes"],
        "narrow": f"the directory of this name in the shared set, cut to {cut}",
        "full": full,
        "greedy_min_margin": round(margin, 5),
        "router_min_margin": None if math.isinf(model.router_margin) else round(float(model.router_margin), 6),
        "logits_std": round(float(logits[-1].std()), 3),
        "max_change_if_other_gelu": gelu,
        "generator": "make_narrow.py",
        "seed": expected["seed"],
    }


def narrow_config(config, tensors, keep, vocab, width=40, key=None, expert_width=None, changes=None):
    """Changes the config and returns the tensors; `key` is the width's where the config leaves it to a default."""
    d = {**DEFAULTS, **FAMILIES[config["model_type"]](config, tensors)}
    tensors = keep_layers(config, d, tensors, keep)
    keep_vocab(config, d, tensors, vocab)
    if width:
        names = [d[name] for name in ("gate_up", "gate", "up", "down") if d[name]]
        keep_width(config, d, tensors, width, [key] if key else WIDTH_KEYS, names)
    if expert_width:
        keep_width(config, d, tensors, expert_width, ("moe_intermediate_size", "intermediate_size"), d["experts"])
    for name, value in (changes or {}).items():
        config[name] = {**config[name], **value} if isinstance(value, dict) else value
    return tensors


def read_full(name):
    """The directory's config, expectations and tensors (masks too), and how well the decoder reproduces it."""
    directory = os.path.join(SHARED, name)
    with open(os.path.join(directory, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(directory, "expected.json")) as f:
        expected = json.load(f)
    path = os.path.join(directory, "model.safetensors")
    tensors = read_safetensors(path)
    error = verify(directory, config, expected, tensors)
    return config, expected, {**tensors, **read_masks(path)}, error


def narrow_ids(expected, vocab, n_ids):
    out = copy.deepcopy(expected)
    for sequence in out["sequences"]:
        sequence["ids"] = [i % vocab for i in sequence["ids"][:n_ids]]
    out["greedy"]["prompt"] = [i % vocab for i in out["greedy"]["prompt"]]
    return out


def write_files(out, config, tensors, logits, result):
    os.makedirs(out, exist_ok=True)
    for file in os.listdir(out):
        os.remove(os.path.join(out, file))
    write_json(os.path.join(out, "config.json"), config)
    write_safetensors(os.path.join(out, "model.safetensors"), tensors)
    for sequence, l in zip(result["sequences"], logits):
        l.astype("<f4").tofile(os.path.join(out, sequence["logits_f32_file"]))
    write_json(os.path.join(out, "expected.json"), result)
    return sum(os.path.getsize(os.path.join(out, file)) for file in os.listdir(out))


def write_narrow(name, keep=(0, 1), dtype="bfloat16", n_ids=28, bias=0, **how):
    """With the smallest odd vocabulary that suits expected_of; 28 ids are more than three windows. `bias` is added to
    what the router adds to the scores of experts: below zero, those of groups left out must not count as 0."""
    full_config, full_expected, full_tensors, error = read_full(name)
    for vocab in range(67, 100, 2):
        config, expected = copy.deepcopy(full_config), narrow_ids(full_expected, vocab, n_ids)
        tensors = narrow_config(config.get("text_config", config), full_tensors, keep, vocab, **how)
        set_dtype(config, dtype)
        for n in tensors:
            if n.endswith("e_score_correction_bias"):
                tensors[n] = tensors[n] + bias
        tensors = {n: stored(n, values) for n, values in tensors.items()}
        model = Decoder(text_of(config), floats(tensors))
        cut = f"layers {', '.join(map(str, keep))}, {vocab} ids (others modulo that), thinner feed-forwards, BF16"
        cut += f", changed: {json.dumps(how['changes'])}" if "changes" in how else ""
        cut += f", e_score_correction_bias {bias:+}" if bias else ""
        made = expected_of(name, expected, model, error, cut)
        if made:
            size = write_files(os.path.join(HERE, name), config, tensors, *made)
            print(f"{name}: {size} bytes, vocabulary {vocab}, full one within {error:.1e}, margin "
                  f"{made[1]['greedy_min_margin']}, router {made[1]['router_min_margin']}", flush=True)
            return
    sys.exit(f"{name}: no vocabulary suits")


def keep_as_it_is(name, out):
    """What is small already is kept as it is."""
    os.makedirs(os.path.join(HERE, out), exist_ok=True)
    for file in os.listdir(os.path.join(SHARED, name)):
        with open(os.path.join(SHARED, name, file), "rb") as f:
            data = f.read()
        with open(os.path.join(HERE, out, file), "wb") as f:
            f.write(data)


def write_fused(name, out):
    """A narrow one with the experts of each layer in two tensors, as modules of transformers 5 have them."""
    made = {}
    os.makedirs(os.path.join(HERE, out), exist_ok=True)
    for file in ("config.json", "logits0.bin", "logits1.bin"):
        shutil.copy(os.path.join(HERE, name, file), os.path.join(HERE, out, file))
    with open(os.path.join(HERE, name, "expected.json")) as f:
        expected = json.load(f)
    expected["variant"] = out
    expected["notes"] = f"{name} with mlp.experts.gate_up_proj and down_proj. {expected['notes']}"
    write_json(os.path.join(HERE, out, "expected.json"), expected)
    for n, values in read_safetensors(os.path.join(HERE, name, "model.safetensors")).items():
        layer, expert, matrix = re.fullmatch(r"(.*mlp\.experts\.)(\d+)\.(.*)\.weight|.*", n).groups()
        if layer:
            made.setdefault(layer, {}).setdefault(matrix, {})[int(expert)] = values
        else:
            made[n] = bf16(values)
    for layer in [n for n in made if n.endswith("experts.")]:
        gate, up, down = ([m[i] for i in range(len(m))] for m in
                          (made[layer][k] for k in ("gate_proj", "up_proj", "down_proj")))
        made[layer + "gate_up_proj"] = bf16(np.concatenate([np.stack(gate), np.stack(up)], axis=1))
        made[layer + "down_proj"] = bf16(np.stack(down))
        del made[layer]
    write_safetensors(os.path.join(HERE, out, "model.safetensors"), made)


# One of each family, the variant that uses most of it; more where a field of models/spec.h, a layout or a form of
# config.json would have no user. `width` None: no dense feed-forward, or no key says its width.
CHOSEN = {
    "llama-bias": {},
    "llama-rope_linear": {"keep": (1,)},
    "llama-rope_llama3": {},
    "llama-tied_defaults": {},
    "mistral": {},
    "qwen2": {},
    "qwen2-window": {},
    "qwen3-newform": {},
    "arcee": {},
    "ernie4_5": {},
    "exaone4": {"keep": (2, 3)},
    "exaone4-full": {},
    "glm": {},
    "glm4": {},
    "granite": {"keep": range(3)},
    "hunyuan_v1_dense": {},
    "nemotron": {},
    "olmo": {},
    "olmo2": {},
    "olmo3": {"keep": (2, 3)},
    "phi3": {},
    "phi3-longrope": {"n_ids": 40},
    "seed_oss": {},
    "smollm3": {"keep": (2, 3)},
    "stablelm": {},
    "stablelm-parallel": {"keep": (1,)},
    "starcoder2": {},
    "cohere-qknorm": {},
    "cohere2": {"changes": {"sliding_window_pattern": 2, "layer_switch": 2}},
    "gemma": {},
    "gemma2": {"dtype": "float32"},
    "gemma3-conditional": {"keep": range(6)},
    "gemma3_text-newform": {"keep": (4, 5)},
    "mixtral": {"width": None, "expert_width": 16},
    "qwen2_moe": {"width": None},
    "qwen3_moe": {"keep": (0, 2), "width": None, "expert_width": 12},
    "qwen3_moe-mixed": {"keep": range(4)},
    "olmoe": {"width": None, "expert_width": 12, "changes": {"clip_qkv": 1.5}},
    "granitemoe": {"width": None},
    "glm4_moe": {},
    "deepseek_v2": {"changes": {"rms_norm_eps": 0.05}},
    "deepseek_v2-lite_yarn": {},
    "deepseek_v3": {"changes": {"rms_norm_eps": 0.05}, "bias": -2},
    "gpt2-hub": {"keep": (0,), "width": None},
    "gpt2-scaled": {},
    "gpt_bigcode": {},
    "gpt_bigcode-mha": {},
    "gpt_neo": {"key": "intermediate_size"},
    "gpt_neox-parallel": {},
    "gpt_neox-sequential": {"keep": (1,)},
    "gptj": {"key": "n_inner"},
    "codegen": {"key": "n_inner"},
    "openai-gpt": {"width": None},
    "opt": {},
    "opt-350m": {},
    "opt-galactica": {},
    "biogpt": {},
    "xglm": {},
    "ctrl": {"changes": {"layer_norm_epsilon": 0.01}},
    "bloom-hub": {"width": None},
    "bloom-postln": {"keep": (0,), "width": None},
    "falcon-7b": {"key": "ffn_hidden_size"},
    "falcon-11b": {},
    "falcon-40b": {"width": 48, "key": "ffn_hidden_size"},
    "falcon-rw": {"key": "ffn_hidden_size"},
    "mpt-clip": {
        "keep": (0, 2),
        "width": 48,
        "key": "expansion_ratio",
        "changes": {"attn_config": {"alibi_bias_max": 5}},
    },
    "phi-gqa": {},
    "bert-lm": {},
    "roberta-lm": {},
}
COPIED = {"gpt_oss-bf16": "gpt_oss-bf16", "gpt_oss-mxfp4": "quantised/gpt_oss-mxfp4"}
FUSED = {"qwen3_moe-fused": "qwen3_moe"}

if __name__ == "__main__":
    for name in sys.argv[1:] or [*CHOSEN, *COPIED, *FUSED]:
        if name in COPIED:
            keep_as_it_is(name, COPIED[name])
        elif name in FUSED:
            write_fused(FUSED[name], name)
        else:
            write_narrow(name, **CHOSEN[name])
