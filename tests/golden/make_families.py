"""Writes the miniatures of families and rope types that no other tool made: python3 make_families.py [NAME...]

Each is a small random checkpoint as save_pretrained would write it, and what make_reference.py computes from
the stored values. Seeds are tried upwards until no greedy choice and no router is close to another.
"""
import copy
import os
import sys

sys.dont_write_bytecode = True

import numpy as np

from make_reference import bf16, f16, write_miniature

HERE = os.path.dirname(os.path.abspath(__file__))
ROPE_UTILS = (
    "modeling_rope_utils.py at 0044e3b3facf and ef46806472a6 (4.x) and as of 5.x (dynamic_rope_update, "
    "_compute_*_parameters)"
)
FLOAT64 = "Matrices are stored in 16 bits, the reference computes in float64 from the stored values; eos is ignored."


def common(architecture, **changes):
    config = {
        "architectures": [architecture],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": 32,
        "initializer_range": 0.02,
        "intermediate_size": 48,
        "max_position_embeddings": 512,
        "mlp_bias": False,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.57.1",
        "use_cache": True,
        "vocab_size": 112,
    }
    config.update(changes)
    return {k: v for k, v in sorted(config.items()) if v is not DROP}


DROP = object()


class Maker:
    """Random tensors under their names, of a size that keeps every layer's output near one."""

    def __init__(self, config, seed, store=bf16):
        self.c, self.rng, self.store, self.out = config, np.random.default_rng(seed), store, {}
        self.hidden, self.vocab = config["hidden_size"], config["vocab_size"]
        self.n_q = config["num_attention_heads"]
        self.n_kv = config.get("num_key_value_heads") or self.n_q
        self.head_dim = config.get("head_dim") or self.hidden // self.n_q

    def matrix(self, name, n_out, n_in, bias=False, gain=1.5):
        self.out[name + ".weight"] = self.store(self.rng.normal(0, gain / n_in**0.5, (n_out, n_in)))
        if bias:
            self.out[name + ".bias"] = self.store(self.rng.normal(0, 0.3, n_out))

    def norm(self, name, n, bias=False):
        self.out[name + ".weight"] = self.store(self.rng.normal(1, 0.3, n))
        if bias:
            self.out[name + ".bias"] = self.store(self.rng.normal(0, 0.3, n))

    def attention(self, p, bias, gain=2.0):
        rows, kv_rows = self.n_q * self.head_dim, self.n_kv * self.head_dim
        self.matrix(p + "self_attn.q_proj", rows, self.hidden, bias, gain)
        self.matrix(p + "self_attn.k_proj", kv_rows, self.hidden, bias, gain)
        self.matrix(p + "self_attn.v_proj", kv_rows, self.hidden, bias)
        self.matrix(p + "self_attn.o_proj", self.hidden, rows, bias)

    def gated(self, p, bias=False):
        size = self.c["intermediate_size"]
        self.matrix(p + "mlp.gate_proj", size, self.hidden, bias)
        self.matrix(p + "mlp.up_proj", size, self.hidden, bias)
        self.matrix(p + "mlp.down_proj", self.hidden, size, bias)

    def ends(self, bias=False, head_bias=False, embedding=None):
        if embedding is None:
            embedding = 0.3 if self.c.get("tie_word_embeddings") else 1.0
        self.matrix("model.embed_tokens", self.vocab, self.hidden, gain=embedding * self.hidden**0.5)
        self.norm("model.norm", self.hidden, bias)
        if not self.c.get("tie_word_embeddings"):
            self.matrix("lm_head", self.vocab, self.hidden, head_bias)


def llama_tensors(config, seed, store=bf16, embedding=None):
    m = Maker(config, seed, store)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        m.norm(p + "input_layernorm", m.hidden)
        m.attention(p, config.get("attention_bias", False))
        m.norm(p + "post_attention_layernorm", m.hidden)
        m.gated(p, config.get("mlp_bias", False))
    m.ends(embedding=embedding)
    return m.out


def apertus_tensors(config, seed):
    m = Maker(config, seed)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        m.norm(p + "attention_layernorm", m.hidden)
        m.attention(p, config["attention_bias"])
        m.norm(p + "self_attn.q_norm", m.head_dim)
        m.norm(p + "self_attn.k_norm", m.head_dim)
        m.norm(p + "feedforward_layernorm", m.hidden)
        m.matrix(p + "mlp.up_proj", config["intermediate_size"], m.hidden)
        m.matrix(p + "mlp.down_proj", m.hidden, config["intermediate_size"])
        m.out[p + "mlp.act_fn.alpha_p"] = bf16(m.rng.normal(0, 1, 1))
        m.out[p + "mlp.act_fn.alpha_n"] = bf16(m.rng.normal(0, 1, 1))
        m.out[p + "mlp.act_fn.beta"] = bf16(np.array(0.5))
        m.out[p + "mlp.act_fn.eps"] = bf16(np.array(-1e-6))
    m.ends()
    return m.out


def phimoe_tensors(config, seed):
    m = Maker(config, seed)
    size = config["intermediate_size"]
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        m.norm(p + "input_layernorm", m.hidden, True)
        m.attention(p, config["attention_bias"])
        m.norm(p + "post_attention_layernorm", m.hidden, True)
        m.matrix(p + "block_sparse_moe.gate", config["num_local_experts"], m.hidden, gain=1)
        for e in range(config["num_local_experts"]):
            q = f"{p}block_sparse_moe.experts.{e}."
            m.matrix(q + "w1", size, m.hidden)
            m.matrix(q + "w2", m.hidden, size)
            m.matrix(q + "w3", size, m.hidden)
    m.ends(True, config["lm_head_bias"])
    return m.out


# ---- what is left out, to see that it matters ----


def values(tensors):
    return {name: t.values for name, t in tensors.items()}


def changed(config, tensors, **keys):
    """The same with other keys of the config; rope__X reaches into rope_scaling or rope_parameters."""
    other = copy.deepcopy(config)
    for key, value in keys.items():
        rope = other.get("rope_parameters") or other.get("rope_scaling")
        (rope if key.startswith("rope__") else other)[key.replace("rope__", "")] = value
    return other, values(tensors)


def without(config, tensors, *endings, value=0.0):
    kept = {n: np.full_like(v, value) if n.endswith(endings) else v for n, v in values(tensors).items()}
    return config, kept


# ---- the miniatures ----

LLAMA3 = {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 32,
    "rope_type": "llama3",
}


def apertus():
    rope = dict(LLAMA3, type="llama3")
    config = common(
        "ApertusForCausalLM",
        model_type="apertus",
        hidden_act="xielu",
        max_position_embeddings=256,
        rope_scaling=rope,
        rope_theta=12000000,
        qk_norm=True,
        post_norm=False,
        hidden_dropout=0.0,
        pad_token_id=3,
    )
    source = "huggingface/transformers src/transformers/models/apertus/modeling_apertus.py at 0205eec1d869, "
    source += "configuration_apertus.py at 008e57439125, XIELUActivation of src/transformers/activations.py; " + ROPE_UTILS
    notes = "xIELU with its own alpha_p and alpha_n in every layer (beta and eps are buffers of the file), query and key "
    notes += "RMSNorm over head_dim, llama3 rope as swiss-ai/Apertus-8B has it, with its keys qk_norm and post_norm. "

    def changes(c, t):
        return {
            "alpha_p of 0": without(c, t, "alpha_p"),
            "alpha_n of 0": without(c, t, "alpha_n"),
            "no rope_scaling": changed(c, t, rope_scaling=None),
        }

    return config, apertus_tensors, source, notes, changes


def apertus_newform():
    config, tensors, source, notes, _ = apertus()
    config = dict(config, head_dim=12, attention_bias=True, num_hidden_layers=3, num_key_value_heads=4)
    config["rope_parameters"] = {"rope_theta": 10000.0, "rope_type": "default"}
    config.update(dtype=config.pop("torch_dtype"), tie_word_embeddings=True, transformers_version="5.0.0")
    for key in ("rope_scaling", "rope_theta", "qk_norm", "post_norm", "mlp_bias", "hidden_dropout"):
        del config[key]

    def changes(c, t):
        return {
            "no biases": without(c, t, ".bias"),
            "alpha_p of 0": without(c, t, "alpha_p"),
            "q_norm and k_norm of 1": without(c, t, "q_norm.weight", "k_norm.weight", value=1.0),
        }

    notes = "The newer form of a save: rope_parameters; head_dim of its own, attention biases, no GQA, tied. "
    return dict(sorted(config.items())), tensors, source, notes, changes


MINICPM_SOURCE = (
    "openbmb/MiniCPM-2B-sft-bf16 modeling_minicpm.py (as carried by mindspore-lab and others) and huggingface/transformers "
    "src/transformers/models/minicpm/modular_minicpm.py at 346cd6ff65e6, which agree; "
)


def minicpm_changes(c, t):
    return {
        "scale_emb = 1": changed(c, t, scale_emb=1),
        "scale_depth = 1": changed(c, t, scale_depth=1),
        "dim_model_base = hidden_size": changed(c, t, dim_model_base=c["hidden_size"]),
    }


def minicpm():
    config = common(
        "MiniCPMForCausalLM",
        auto_map={
            "AutoConfig": "configuration_minicpm.MiniCPMConfig",
            "AutoModel": "modeling_minicpm.MiniCPMModel",
            "AutoModelForCausalLM": "modeling_minicpm.MiniCPMForCausalLM",
        },
        model_type="minicpm",
        num_key_value_heads=4,
        scale_emb=12,
        scale_depth=1.4,
        dim_model_base=24,
        attention_bias=DROP,
        attention_dropout=DROP,
        mlp_bias=DROP,
        rope_theta=DROP,
        tie_word_embeddings=DROP,
        num_hidden_layers=3,
    )
    notes = "Embeddings times scale_emb, branches times scale_depth / sqrt(layers), the head's input divided by hidden_size / "
    notes += "dim_model_base; tied by the family's default, as the config does not say it. "

    def tensors(c, seed):
        return llama_tensors(dict(c, tie_word_embeddings=True), seed, embedding=0.1)

    return config, tensors, MINICPM_SOURCE, notes, minicpm_changes


def minicpm_longrope():
    config = common(
        "MiniCPMForCausalLM",
        model_type="minicpm",
        max_position_embeddings=64,
        rope_scaling={
            "long_factor": [1.2, 2.9, 7.5, 12.4],
            "original_max_position_embeddings": 38,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.3, 1.9],
        },
        scale_emb=12,
        scale_depth=1.4,
        dim_model_base=16,
        mup_denominator=32,
        mlp_bias=DROP,
        attention_bias=DROP,
    )
    notes = "longrope and mup_denominator as MiniCPM4, untied. 11 tokens and the greedy run (35) use short_factor, the 40 tokens "
    notes += "long_factor at every position, as transformers does it (openbmb's own file takes long_factor for every length where "
    notes += "max_position_embeddings is above the original length, which no published config has). "

    def tensors(c, seed):
        return llama_tensors(c, seed, embedding=0.1)

    def changes(c, t):
        long = changed(c, t, rope__long_factor=c["rope_scaling"]["short_factor"])
        return dict(minicpm_changes(c, t), **{"long = short": long})

    return config, tensors, MINICPM_SOURCE + ROPE_UTILS, notes, changes


MINISTRAL_SOURCE = (
    "huggingface/transformers src/transformers/models/ministral3/modular_ministral3.py at 00b364c707da, modeling_ministral3.py at "
    "430bd51d2602 (the masks), convert_ministral3_weights_to_hf.py at b731efc0ff2a (the configs); " + ROPE_UTILS
)


def ministral3():
    config = common(
        "Ministral3ForCausalLM",
        model_type="ministral3",
        head_dim=12,
        max_position_embeddings=128,
        rope_parameters={
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "factor": 16.0,
            "llama_4_scaling_beta": 0.3,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 8,
            "rope_theta": 1000000.0,
            "rope_type": "yarn",
            "type": "yarn",
        },
        sliding_window=None,
        pad_token_id=11,
        dtype="bfloat16",
        torch_dtype=DROP,
        attention_bias=DROP,
        mlp_bias=DROP,
        rope_scaling=DROP,
        rope_theta=DROP,
        transformers_version="5.0.0.dev0",
    )
    notes = "Queries times 1 + llama_4_scaling_beta * ln(1 + floor(position / 8)), so positions from 8 on differ; yarn far past its "
    notes += "original length, with mscale equal to mscale_all_dim (attention factor 1), as Ministral 3. "

    def changes(c, t):
        return {
            "llama_4_scaling_beta = 0": changed(c, t, rope__llama_4_scaling_beta=0.0),
            "no yarn": changed(c, t, rope__rope_type="default"),
            "no mscale": changed(c, t, rope__mscale=None),
        }

    return config, llama_tensors, MINISTRAL_SOURCE, notes, changes


def ministral3_window():
    config = ministral3()[0]
    config.update(head_dim=8, sliding_window=7, tie_word_embeddings=True, num_hidden_layers=3)
    config["rope_parameters"].update(
        factor=4.0, original_max_position_embeddings=16, mscale_all_dim=0.0, llama_4_scaling_beta=0, beta_fast=4.0
    )
    notes = "As the converter writes a model without vision: mscale_all_dim 0.0 (so that the attention factor is 0.1 ln(factor) + 1), "
    notes += "llama_4_scaling_beta 0 (no growth); a sliding window of 7 in every layer, tied. "

    def changes(c, t):
        return {
            "no window": changed(c, t, sliding_window=None),
            "no yarn": changed(c, t, rope__rope_type="default"),
            "attention factor 1": changed(c, t, rope__attention_factor=1.0),
        }

    return config, llama_tensors, MINISTRAL_SOURCE, notes, changes


LLAMA_SOURCE = "huggingface/transformers src/transformers/models/llama/modeling_llama.py; " + ROPE_UTILS


def llama_dynamic():
    config = common(
        "LlamaForCausalLM",
        model_type="llama",
        max_position_embeddings=36,
        rope_scaling={"factor": 8.0, "rope_type": "dynamic"},
        rope_theta=500.0,
    )
    notes = "dynamic NTK: 11 tokens and the greedy run (35) stay within max_position_embeddings of 36 and turn as without scaling; 40 "
    notes += "tokens at once go beyond it, and the larger base holds for every one of them. "

    def changes(c, t):
        return {
            "no rope_scaling": changed(c, t, rope_scaling=None),
            "factor 2": changed(c, t, rope__factor=2.0),
        }

    return config, llama_tensors, LLAMA_SOURCE, notes, changes


def llama_dynamic_growing():
    config = llama_dynamic()[0]
    config.update(max_position_embeddings=24, head_dim=12, rope_scaling={"factor": 4.0, "type": "dynamic"})
    config.update(tie_word_embeddings=True)
    notes = "dynamic NTK under its older key \"type\", tied, head_dim of its own. The greedy run crosses max_position_embeddings of 24 at "
    notes += "its 14th id: from there every step has a base of its own, and keys stay in the cache as their step turned them. "

    def changes(c, t):
        return {"no rope_scaling": changed(c, t, rope_scaling=None), "factor 2": changed(c, t, rope__factor=2.0)}

    return config, llama_tensors, LLAMA_SOURCE, notes, changes


def llama_longrope():
    config = common(
        "LlamaForCausalLM",
        model_type="llama",
        max_position_embeddings=152,
        original_max_position_embeddings=38,
        rope_scaling={
            "factor": 4.0,
            "long_factor": [1.2, 1.9, 7.5, 18.7],
            "original_max_position_embeddings": 38,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.3, 1.9],
        },
    )
    notes = "longrope outside phi3: 11 tokens and the greedy run (35) use short_factor, 40 tokens long_factor at every position; the "
    notes += "attention factor sqrt(1 + ln 4 / ln 38) acts in both. "

    def changes(c, t):
        return {
            "long = short": changed(c, t, rope__long_factor=c["rope_scaling"]["short_factor"]),
            "attention factor 1": changed(c, t, rope__attention_factor=1.0),
            "no rope_scaling": changed(c, t, rope_scaling=None),
        }

    return config, llama_tensors, LLAMA_SOURCE, notes, changes


def llama_longrope_newform():
    config = llama_longrope()[0]
    rope = config.pop("rope_scaling")
    del config["original_max_position_embeddings"], rope["factor"]
    rope.update(attention_factor=1.3, rope_theta=config.pop("rope_theta"))
    config.update(rope_parameters=rope, attention_bias=True, mlp_bias=True, dtype=config.pop("torch_dtype"))
    config.update(transformers_version="5.0.0")
    notes = "longrope in rope_parameters: no factor, attention_factor given, original length only beside the type; all biases. "

    def changes(c, t):
        return {
            "long = short": changed(c, t, rope__long_factor=c["rope_parameters"]["short_factor"]),
            "attention_factor 1": changed(c, t, rope__attention_factor=1.0),
            "no biases": without(c, t, ".bias"),
        }

    return dict(sorted(config.items())), llama_tensors, LLAMA_SOURCE, notes, changes


def llama_yarn_far():
    config = common(
        "LlamaForCausalLM",
        model_type="llama",
        head_dim=16,
        max_position_embeddings=64,
        rope_scaling={
            "beta_fast": 1.0,
            "beta_slow": 0.25,
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "rope_type": "yarn",
        },
        rope_theta=100.0,
    )
    notes = "yarn at positions past its original length of 16, with betas of its own so that the ramp lies within the head. "

    def changes(c, t):
        return {
            "no rope_scaling": changed(c, t, rope_scaling=None),
            "default betas": changed(c, t, rope__beta_fast=32.0, rope__beta_slow=1.0),
            "attention factor 1": changed(c, t, rope__attention_factor=1.0),
        }

    return config, llama_tensors, LLAMA_SOURCE, notes, changes


def llama_yarn_truncate():
    config = llama_yarn_far()[0]
    rope = dict(config["rope_scaling"], truncate=False, attention_factor=1.25, factor=8.0, rope_theta=100.0)
    del config["rope_scaling"], config["rope_theta"]
    config.update(rope_parameters=rope, max_position_embeddings=128, tie_word_embeddings=True, torch_dtype="float16")
    notes = "yarn past its original length, truncate false and attention_factor given, in rope_parameters; float16, tied. "

    def tensors(c, seed):
        return llama_tensors(c, seed, f16)

    def changes(c, t):
        return {
            "truncate true": changed(c, t, rope__truncate=True),
            "attention_factor 1": changed(c, t, rope__attention_factor=1.0),
        }

    return dict(sorted(config.items())), tensors, LLAMA_SOURCE, notes, changes


PHIMOE_SOURCE = (
    "huggingface/transformers src/transformers/models/phimoe/modeling_phimoe.py at 008f5c8c29be (sparsemixer, PhimoeRotaryEmbedding, "
    "nn.LayerNorm), configuration_phimoe.py at 23925e160765; sparsemixer and rope are the same in modular_phimoe.py at 4a4355307f5f; "
    + ROPE_UTILS
)


def phimoe():
    config = common(
        "PhiMoEForCausalLM",
        auto_map={
            "AutoConfig": "configuration_phimoe.PhiMoEConfig",
            "AutoModelForCausalLM": "modeling_phimoe.PhiMoEForCausalLM",
        },
        model_type="phimoe",
        attention_bias=True,
        hidden_dropout=0.0,
        input_jitter_noise=0.01,
        intermediate_size=24,
        lm_head_bias=True,
        max_position_embeddings=152,
        num_experts_per_tok=2,
        num_local_experts=8,
        original_max_position_embeddings=38,
        output_router_logits=False,
        rope_scaling={
            "long_factor": [1.2, 1.9, 7.5, 18.7],
            "long_mscale": 1.24,
            "original_max_position_embeddings": 38,
            "short_factor": [1.0, 1.05, 1.3, 1.9],
            "short_mscale": 1.1,
            "type": "longrope",
        },
        router_aux_loss_coef=0.0,
        router_jitter_noise=0.01,
        sliding_window=131072,
        mlp_bias=DROP,
    )
    notes = "sparsemixer at inference: the best expert twice, each weight a softmax over the experts within 2 * router_jitter_noise of it "
    notes += "(the two weights are not shared out); LayerNorm with biases, biases of attention and head; longrope whose short_mscale and "
    notes += "long_mscale replace the attention factor. 11 tokens and the greedy run (35) are short, 40 tokens long. "

    def changes(c, t):
        return {
            "router_jitter_noise 0.3": changed(c, t, router_jitter_noise=0.3),
            "no mscale": changed(c, t, rope__long_mscale=1.0, rope__short_mscale=1.0),
            "long = short": changed(c, t, rope__long_factor=c["rope_scaling"]["short_factor"]),
            "no biases": without(c, t, ".bias"),
            "no head bias": without(c, t, "lm_head.bias"),
        }

    return config, phimoe_tensors, PHIMOE_SOURCE, notes, changes


def phimoe_window():
    config = dict(phimoe()[0], sliding_window=9, router_jitter_noise=0.2, num_local_experts=5, lm_head_bias=False)
    config.update(rope_scaling=None, attention_bias=False, num_hidden_layers=3, num_key_value_heads=1)
    del config["original_max_position_embeddings"], config["auto_map"]
    notes = "A sliding window of 9, a wide router_jitter_noise so that many weights lie below one, no rope_scaling, no biases but those of "
    notes += "the norms, 5 experts, one key head. "

    def changes(c, t):
        return {
            "no window": changed(c, t, sliding_window=None),
            "router_jitter_noise 0.01": changed(c, t, router_jitter_noise=0.01),
            "no biases": without(c, t, ".bias"),
        }

    return config, phimoe_tensors, PHIMOE_SOURCE, notes, changes


MINIATURES = {
    "apertus": apertus,
    "apertus-newform": apertus_newform,
    "llama-rope_dynamic": llama_dynamic,
    "llama-rope_dynamic_growing": llama_dynamic_growing,
    "llama-rope_longrope": llama_longrope,
    "llama-rope_longrope_newform": llama_longrope_newform,
    "llama-rope_yarn_far": llama_yarn_far,
    "llama-rope_yarn_untruncated": llama_yarn_truncate,
    "minicpm": minicpm,
    "minicpm-longrope": minicpm_longrope,
    "ministral3": ministral3,
    "ministral3-window": ministral3_window,
    "phimoe": phimoe,
    "phimoe-window": phimoe_window,
}


def main(names):
    for name in names or MINIATURES:
        config, make, source, notes, changes = MINIATURES[name]()
        for seed in range(1, 200):
            tensors = make(config, seed)
            known = dict(config, tie_word_embeddings="lm_head.weight" not in tensors)
            if write_miniature(
                os.path.join(HERE, name), config, tensors, values(tensors), notes + FLOAT64, source,
                "make_families.py", seed, changes(known, tensors), known,
            ):
                break
        else:
            sys.exit(f"{name}: no seed will do")


if __name__ == "__main__":
    main(sys.argv[1:])
