"""What the golden miniatures are made with: safetensors files, and decoders in float64.

Every class below is written from the family's original definition (named in its miniatures' `source`), never
from this project's C code: it is what that code is held against. Plain numpy, one token sequence, a cache of
rotated keys as transformers keeps it. `python3 make_reference.py DIR...` recomputes miniatures that exist.
"""
import json
import math
import os
import struct
import sys

import numpy as np

# ---- numbers as checkpoints store them ----


def to_bf16(x):
    """Nearest bfloat16, ties to even, as its 16 bits."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def e4m3_table():
    """OCP 8-bit floating point specification, E4M3: bias 7, no infinities, 0x7f and 0xff are no numbers."""
    table = np.zeros(256)
    for i in range(256):
        exponent, mantissa = (i >> 3) & 15, i & 7
        value = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
        table[i] = (math.nan if i & 127 == 127 else value) * (-1 if i & 128 else 1)
    return table


E4M3 = e4m3_table()


def to_e4m3(x):
    """Nearest E4M3, ties to even, what is too large to 448."""
    positive = E4M3[:127]
    magnitude = np.minimum(np.abs(x), 448)
    above = np.clip(np.searchsorted(positive, magnitude), 1, 126)
    middle = (positive[above - 1] + positive[above]) / 2
    even = above % 2 == 0
    codes = np.where((magnitude > middle) | ((magnitude == middle) & even), above, above - 1)
    return (codes | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


class Stored:
    """A tensor as a file holds it: its bits, the name of its dtype, and the float64 values they mean."""

    def __init__(self, bits, dtype, values=None):
        self.bits, self.dtype = np.asarray(bits, order="C"), dtype
        self.values = np.asarray(bits, np.float64) if values is None else np.asarray(values, np.float64)


def bf16(x):
    bits = to_bf16(np.atleast_1d(x))
    return Stored(bits.reshape(np.shape(x)), "BF16", from_bf16(bits).reshape(np.shape(x)))


def f16(x):
    return Stored(np.asarray(x, np.float16), "F16")


def f32(x):
    return Stored(np.asarray(x, np.float32), "F32")


def fp8(x):
    bits = to_e4m3(x)
    return Stored(bits, "F8_E4M3", E4M3[bits])


def i8(x):
    return Stored(np.asarray(x, np.int8), "I8")


def i32(x):
    return Stored(np.asarray(x, np.int64).astype(np.uint32).view(np.int32), "I32")


def i64(x):
    return Stored(np.asarray(x, np.int64), "I64")


def write_safetensors(path, tensors):
    """As the safetensors library orders them: larger elements first, then names."""
    header, offset, chunks = {"__metadata__": {"format": "pt"}}, 0, []
    for name in sorted(tensors, key=lambda n: (-tensors[n].bits.itemsize, n)):
        t = tensors[name]
        data = t.bits.tobytes()
        header[name] = {"dtype": t.dtype, "shape": list(t.bits.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        chunks.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def read_safetensors(path):
    """Names to float64 arrays, for the floating types that need no scale."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    types = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__" and t["dtype"] in types:
            raw = np.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            tensors[name] = (from_bf16(raw) if t["dtype"] == "BF16" else raw).astype(np.float64)
    return tensors


# ---- rotary frequencies: transformers/modeling_rope_utils.py ----


def rope_config(config):
    """rope_parameters of newer saves, or rope_theta and rope_scaling of older ones, in one form."""
    rope = dict(config.get("rope_scaling") or {}, **(config.get("rope_parameters") or {}))
    rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    rope["rope_type"] = rope.get("rope_type") or rope.get("type") or "default"
    original = config.get("original_max_position_embeddings")
    if original:
        rope["original_max_position_embeddings"] = original
    rope.setdefault("original_max_position_embeddings", config["max_position_embeddings"])
    rope.setdefault("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    return rope


def rope_llama3(rope, inv_freq):
    original = rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    wavelength = 2 * math.pi / inv_freq
    smooth = (original / wavelength - low) / (high - low)
    between = (1 - smooth) * inv_freq / factor + smooth * inv_freq
    out = np.where(wavelength > original / low, inv_freq / factor, inv_freq)
    is_between = ~(wavelength < original / high) & ~(wavelength > original / low)
    return np.where(is_between, between, out)


def rope_yarn(rope, inv_freq, dim):
    base, original, factor = rope["rope_theta"], rope["original_max_position_embeddings"], rope["factor"]

    def dimension(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = dimension(rope.get("beta_fast") or 32), dimension(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
    return inv_freq / factor * ramp + inv_freq * (1 - ramp)


def yarn_attention_factor(rope):
    def get_mscale(scale, mscale=1.0):
        return 1.0 if scale <= 1 else 0.1 * mscale * math.log(scale) + 1.0

    if rope.get("attention_factor") is not None:
        return rope["attention_factor"]
    if rope.get("mscale") and rope.get("mscale_all_dim"):
        return get_mscale(rope["factor"], rope["mscale"]) / get_mscale(rope["factor"], rope["mscale_all_dim"])
    return get_mscale(rope["factor"])


def longrope_attention_factor(config, rope):
    original = rope["original_max_position_embeddings"]
    factor = rope.get("factor") or config["max_position_embeddings"] / original
    if rope.get("attention_factor") is not None:
        return rope["attention_factor"]
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))


def rope_frequencies(config, head_dim, length):
    """Inverse frequencies and the factor of cos and sin, for a text of so many tokens."""
    rope = rope_config(config)
    kind, base = rope["rope_type"], rope["rope_theta"]
    dim = int(head_dim * rope["partial_rotary_factor"])
    if kind == "dynamic" and length > config["max_position_embeddings"]:
        stretch = rope["factor"] * length / config["max_position_embeddings"] - (rope["factor"] - 1)
        base = base * stretch ** (dim / (dim - 2))
    inv_freq = 1.0 / base ** (np.arange(0, dim, 2) / dim)
    if kind == "linear":
        return inv_freq / rope["factor"], 1.0
    if kind == "llama3":
        return rope_llama3(rope, inv_freq), 1.0
    if kind == "yarn":
        return rope_yarn(rope, inv_freq, dim), yarn_attention_factor(rope)
    if kind == "longrope":
        long = length > rope["original_max_position_embeddings"]
        inv_freq = inv_freq / np.array(rope["long_factor" if long else "short_factor"], np.float64)
        return inv_freq, longrope_attention_factor(config, rope)
    assert kind in ("default", "dynamic"), kind
    return inv_freq, 1.0


def rotate(x, positions, inv_freq, factor):
    """x [heads, n, head_dim]; the first dims of a head turn, its halves paired (rotate_half)."""
    angles = positions[:, None] * inv_freq[None, :]
    cos, sin = np.cos(angles) * factor, np.sin(angles) * factor
    half = len(inv_freq)
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)


# ---- decoders ----


def silu(x):
    return x / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Llama:
    """transformers/models/llama/modeling_llama.py; the other families change methods of it."""

    attention_norm, ffn_norm = "input_layernorm", "post_attention_layernorm"
    eps_key = "rms_norm_eps"

    def __init__(self, config, tensors):
        c = self.config = config
        self.t = {name.replace("language_model.", "", 1): value for name, value in tensors.items()}
        self.n_layers, self.n_heads = c["num_hidden_layers"], c["num_attention_heads"]
        self.n_kv = c.get("num_key_value_heads") or self.n_heads
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.n_heads
        self.eps = c.get(self.eps_key, 1e-6)
        self.router_margin = math.inf

    def linear(self, name, x):
        y = x @ self.t[name + ".weight"].T
        return y + self.t[name + ".bias"] if name + ".bias" in self.t else y

    def rms_norm(self, name, x):
        return self.t[name + ".weight"] * (x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps))

    norm = rms_norm

    def layer_norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return x * self.t[name + ".weight"] + self.t[name + ".bias"]

    def embed(self, ids):
        return self.t["model.embed_tokens.weight"][ids]

    def head(self, x):
        if self.config.get("tie_word_embeddings", False):
            return x @ self.t["model.embed_tokens.weight"].T
        return self.linear("lm_head", x)

    def residual(self, x):
        return x

    def window(self, layer):
        return self.config.get("sliding_window")

    def frequencies(self, length):
        return rope_frequencies(self.config, self.head_dim, length)

    def query_key_norm(self, p, q, k):
        return q, k

    def scale_queries(self, q, positions):
        return q

    def heads(self, x, n):
        return x.reshape(len(x), n, self.head_dim).transpose(1, 0, 2)

    def attention(self, layer, x, positions, cache):
        p = f"model.layers.{layer}.self_attn."
        q = self.heads(self.linear(p + "q_proj", x), self.n_heads)
        k = self.heads(self.linear(p + "k_proj", x), self.n_kv)
        v = self.heads(self.linear(p + "v_proj", x), self.n_kv)
        q, k = self.query_key_norm(p, q, k)
        inv_freq, factor = self.frequencies(positions[-1] + 1)
        q, k = rotate(q, positions, inv_freq, factor), rotate(k, positions, inv_freq, factor)
        q = self.scale_queries(q, positions)
        if layer in cache:
            k, v = np.concatenate([cache[layer][0], k], 1), np.concatenate([cache[layer][1], v], 1)
        cache[layer] = k, v
        group = self.n_heads // self.n_kv
        scores = q @ np.repeat(k, group, 0).transpose(0, 2, 1) / math.sqrt(self.head_dim)
        distance = positions[:, None] - np.arange(k.shape[1])[None, :]
        window = self.window(layer)
        allowed = (distance >= 0) & (distance < window if window else True)
        weights = softmax(np.where(allowed, scores, -np.inf))
        out = weights @ np.repeat(v, group, 0)
        return self.linear(p + "o_proj", out.transpose(1, 0, 2).reshape(len(x), -1))

    def ffn(self, layer, x):
        p = f"model.layers.{layer}.mlp."
        return self.linear(p + "down_proj", silu(self.linear(p + "gate_proj", x)) * self.linear(p + "up_proj", x))

    def forward(self, ids, cache=None):
        """Logits [n, vocab] of ids that follow what the cache holds."""
        cache = {} if cache is None else cache
        past = cache[0][0].shape[1] if cache else 0
        positions = np.arange(past, past + len(ids))
        x = self.embed(np.array(ids))
        for i in range(self.n_layers):
            p = f"model.layers.{i}."
            x = x + self.residual(self.attention(i, self.norm(p + self.attention_norm, x), positions, cache))
            x = x + self.residual(self.ffn(i, self.norm(p + self.ffn_norm, x)))
        return self.head(self.norm("model.norm", x))

    def greedy(self, prompt, n):
        """The n most probable ids, each fed back, and the smallest margin over the second best."""
        cache, ids, margin, feed = {}, [], math.inf, prompt
        for _ in range(n):
            logits = self.forward(feed, cache)[-1]
            first, second = np.sort(logits)[::-1][:2]
            margin = min(margin, first - second)
            ids.append(int(logits.argmax()))
            feed = ids[-1:]
        return ids, float(margin)


class Qwen3(Llama):
    def query_key_norm(self, p, q, k):
        return self.rms_norm(p + "q_norm", q), self.rms_norm(p + "k_norm", k)

    def window(self, layer):
        return None


class Apertus(Qwen3):
    """transformers/models/apertus/modeling_apertus.py, XIELUActivation in transformers/activations.py."""

    attention_norm, ffn_norm = "attention_layernorm", "feedforward_layernorm"

    def ffn(self, layer, x):
        p = f"model.layers.{layer}.mlp."
        x = self.linear(p + "up_proj", x)
        beta, eps = self.t[p + "act_fn.beta"], self.t[p + "act_fn.eps"]
        alpha_p = softplus(self.t[p + "act_fn.alpha_p"])
        alpha_n = beta + softplus(self.t[p + "act_fn.alpha_n"])
        negative = (np.expm1(np.minimum(x, eps)) - x) * alpha_n + beta * x
        return self.linear(p + "down_proj", np.where(x > 0, alpha_p * x * x + beta * x, negative))


class MiniCPM(Llama):
    """modeling_minicpm.py of openbmb, transformers/models/minicpm/modular_minicpm.py."""

    def embed(self, ids):
        return super().embed(ids) * self.config["scale_emb"]

    def residual(self, x):
        return x * (self.config["scale_depth"] / math.sqrt(self.n_layers))

    def head(self, x):
        return super().head(x / (self.config["hidden_size"] / self.config["dim_model_base"]))


class Ministral3(Llama):
    """transformers/models/ministral3/modular_ministral3.py: _get_llama_4_attn_scale."""

    def scale_queries(self, q, positions):
        rope = self.config["rope_parameters"]
        steps = np.floor(positions / rope["original_max_position_embeddings"])
        return q * (1 + rope["llama_4_scaling_beta"] * np.log(1 + steps))[:, None]


class Mixtral(Llama):
    """transformers/models/mixtral/modeling_mixtral.py."""

    def route(self, logits):
        """Experts and weights [n, 2] of the router's logits."""
        experts = np.argsort(-logits, -1, "stable")
        k = self.config["num_experts_per_tok"]
        chosen = np.take_along_axis(logits, experts, -1)
        self.router_margin = min(self.router_margin, (chosen[:, k - 1] - chosen[:, k]).min())
        return experts[:, :k], softmax(chosen[:, :k])

    def ffn(self, layer, x):
        p = f"model.layers.{layer}.block_sparse_moe."
        experts, weights = self.route(self.linear(p + "gate", x))
        out = np.zeros_like(x)
        for i, row in enumerate(x):
            for e, weight in zip(experts[i], weights[i]):
                q = f"{p}experts.{e}."
                out[i] += weight * self.linear(q + "w2", silu(self.linear(q + "w1", row)) * self.linear(q + "w3", row))
        return out


class Phimoe(Mixtral):
    """transformers/models/phimoe/modeling_phimoe.py: sparsemixer, PhimoeRotaryEmbedding."""

    norm = Llama.layer_norm

    def frequencies(self, length):
        inv_freq, factor = super().frequencies(length)
        rope = self.config.get("rope_scaling")
        if rope:
            long = length > rope["original_max_position_embeddings"]
            factor = rope["long_mscale" if long else "short_mscale"]
        return inv_freq, factor

    def route(self, logits):
        """Twice the best expert; its weight is a softmax over those within 2 jitter of it, relatively."""
        threshold = 2 * self.config["router_jitter_noise"]
        left, experts, weights = logits.copy(), [], []
        for _ in range(2):
            best = left.argmax(-1)
            top = left.max(-1, keepdims=True)
            gap = (top - logits) / np.maximum(np.abs(logits), top)
            gates = softmax(np.where(gap > threshold, -np.inf, left))
            experts.append(best)
            weights.append(np.take_along_axis(gates, best[:, None], -1)[:, 0])
            candidates = np.where(np.isfinite(left), np.abs(gap - threshold), np.inf)
            runner_up = np.sort(left, -1)[:, -2]
            self.router_margin = min(self.router_margin, candidates.min(), (top[:, 0] - runner_up).min())
            np.put_along_axis(left, best[:, None], -np.inf, -1)
        return np.stack(experts, -1), np.stack(weights, -1)


class Phi3(Llama):
    """Only to check longrope: fused q, k, v and gate, up are taken apart on reading."""

    def __init__(self, config, tensors):
        super().__init__(config, tensors)
        n_q, n_kv = self.n_heads * self.head_dim, self.n_kv * self.head_dim
        for i in range(self.n_layers):
            p = f"model.layers.{i}."
            fused = self.t[p + "self_attn.qkv_proj.weight"]
            for name, part in zip("qkv", np.split(fused, [n_q, n_q + n_kv])):
                self.t[f"{p}self_attn.{name}_proj.weight"] = part
            gate, up = np.split(self.t[p + "mlp.gate_up_proj.weight"], 2)
            self.t[p + "mlp.gate_proj.weight"], self.t[p + "mlp.up_proj.weight"] = gate, up


class StableLM(Llama):
    """Only to check LayerNorm."""

    norm, eps_key = Llama.layer_norm, "layer_norm_eps"


FAMILIES = {
    "llama": Llama,
    "mistral": Llama,
    "qwen3": Qwen3,
    "apertus": Apertus,
    "minicpm": MiniCPM,
    "ministral3": Ministral3,
    "mixtral": Mixtral,
    "phimoe": Phimoe,
    "phi3": Phi3,
    "stablelm": StableLM,
}


def decoder(config, tensors):
    config = config.get("text_config", config)
    return FAMILIES[config["model_type"]](config, tensors)


# ---- miniatures ----


def write_json(path, value):
    def text(v, indent):
        if isinstance(v, dict) and v:
            inner = " " * (indent + 2)
            rows = [f"{inner}{json.dumps(k)}: {text(x, indent + 2)}" for k, x in v.items()]
            return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
        if isinstance(v, list) and v and isinstance(v[0], dict):
            inner = " " * (indent + 2)
            return "[\n" + ",\n".join(inner + text(x, indent + 2) for x in v) + "\n" + " " * indent + "]"
        return json.dumps(v)

    with open(path, "w") as f:
        f.write(text(value, 0) + "\n")


def write_miniature(directory, config, tensors, values, notes, source, generator, seed, changes, known=None):
    """tensors: names to Stored; values: names to what the decoder computes with; changes: a name to a
    (config, values) that lack the speciality; known: the config with defaults that it does not spell out.
    False, and nothing written, where a margin is too thin."""
    rng = np.random.default_rng([seed, 77])
    text = config.get("text_config", config)
    sequences = [[int(i) for i in rng.integers(3, text["vocab_size"], n)] for n in (11, 40)]
    model = decoder(known or config, values)
    logits = [model.forward(ids) for ids in sequences]
    ids, margin = model.greedy(sequences[0], 24)
    if margin < 0.02 or model.router_margin < 0.0005 or len(set(ids)) < 4:
        return False
    os.makedirs(directory, exist_ok=True)
    write_json(os.path.join(directory, "config.json"), config)
    write_safetensors(os.path.join(directory, "model.safetensors"), tensors)
    moved = {}
    for name, (changed_config, changed_values) in changes.items():
        other = decoder(changed_config, changed_values)
        moved[name] = round(max(float(np.abs(other.forward(s) - l).max()) for s, l in zip(sequences, logits)), 4)
    for i, l in enumerate(logits):
        l.astype("<f4").tofile(os.path.join(directory, f"logits{i}.bin"))
    router = None if math.isinf(model.router_margin) else round(float(model.router_margin), 5)
    write_json(
        os.path.join(directory, "expected.json"),
        {
            "kind": "causal-lm",
            "family": text["model_type"],
            "variant": os.path.basename(directory),
            "sequences": [{"ids": s, "logits_f32_file": f"logits{i}.bin"} for i, s in enumerate(sequences)],
            "greedy": {"prompt": sequences[0], "ids": ids},
            "source": source,
            "notes": notes,
            "greedy_min_margin": round(margin, 5),
            "router_min_margin": router,
            "logits_std": round(float(logits[1].std()), 3),
            "max_change_of_logits_if": moved,
            "generator": generator,
            "seed": seed,
        },
    )
    size = sum(os.path.getsize(os.path.join(directory, f)) for f in os.listdir(directory))
    print(f"{os.path.basename(directory)}: seed {seed}, {size} bytes, margin {margin:.3f}, {moved}")
    return True


def check(directory):
    """The largest difference from the miniature's logits, and whether the greedy ids are the same."""
    with open(os.path.join(directory, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(directory, "expected.json")) as f:
        expected = json.load(f)
    tensors = {}
    for file in sorted(os.listdir(directory)):
        if file.endswith(".safetensors"):
            tensors.update(read_safetensors(os.path.join(directory, file)))
    model, worst = decoder(config, tensors), 0.0
    for sequence in expected["sequences"]:
        logits = model.forward(sequence["ids"])
        stored = np.fromfile(os.path.join(directory, sequence["logits_f32_file"]), "<f4")
        worst = max(worst, float(np.abs(logits.ravel() - stored).max()))
    greedy = expected["greedy"]
    same = model.greedy(greedy["prompt"], len(greedy["ids"]))[0] == greedy["ids"]
    print(f"{directory}: {worst:.2e}, greedy ids {'equal' if same else 'DIFFER'}")


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        check(directory)
