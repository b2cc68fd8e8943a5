/*
 * The same steps as the loop of command_generate.c, turned inside out: there the answer asks for
 * the next logits, here they are brought to it.
 */
#include "cli/reply.h"

#include "cli/json_out.h"
#include "cli/reply_chances.h"
#include "cli/settle.h"

static bool look_back(struct reply *r, struct err *e)
{
    const struct ids *prompt = r->request.prompt;
    struct bytes unused;
    for (size_t i = 0; i < prompt->n; i++) {
        sampler_accept(r->sampler, prompt->id[i]);
        if (r->decoder && !decoder_next(r->decoder, prompt->id[i], &unused, e))
            return false;
    }
    return true;
}

bool reply_begin(struct reply *r, const struct reply_request *request, struct err *e)
{
    const struct loaded *l = request->loaded;
    const int n_vocab = model_info(l->model)->vocab_size;
    const int n_most = (int)(request->prompt->n + request->limit);
    *r = (struct reply){.request = *request};
    r->stream = (struct stream){
        .fd = STREAM_COLLECT, .stops = request->stop->item, .n_stops = request->stop->n};
    r->sampler = sampler_new(request->sampling, n_vocab, n_most, e);
    if (!r->sampler)
        return false;
    if (l->tokenizer && (r->decoder = decoder_new(l->tokenizer, request->o->special, e)) == NULL)
        return false;
    const size_t n = request->prompt->n;
    const int32_t last = n > 0 ? request->prompt->id[n - 1] : -1;
    if (request->wants_logprobs &&
        (r->chances = reply_chances_new(l->tokenizer, request->n_likeliest, last, e)) == NULL)
        return false;
    if (request->limit == 0)
        r->end = REPLY_LENGTH;
    return look_back(r, e);
}

/* A token that belongs to the answer. */
static bool put(struct reply *r, const float *logits, int32_t id, struct err *e)
{
    struct bytes text = {.size = 0};
    const int n_vocab = model_info(r->request.loaded->model)->vocab_size;
    return ids_push(&r->ids, id, e) && (!r->decoder || decoder_next(r->decoder, id, &text, e)) &&
           (!r->chances || reply_chances_add(r->chances, logits, n_vocab, id, text, e)) &&
           stream_put(&r->stream, (const char *)text.data, text.size, e);
}

bool reply_take(struct reply *r, const float *logits, size_t position, struct err *e)
{
    const int32_t id = sampler_next(r->sampler, logits, position);
    if (!sample_is_sound(logits, id)) {
        r->end = REPLY_NOT_FINITE;
        return true;
    }
    const bool last = settle_ends_text(r->request.o, r->request.stop, r->request.loaded, id);
    if ((!last || r->request.o->special) && !put(r, logits, id, e))
        return false;
    if (last || r->stream.stopped)
        r->end = REPLY_STOP;
    else if (r->ids.n == r->request.limit)
        r->end = REPLY_LENGTH;
    sampler_accept(r->sampler, id);
    return r->end == REPLY_OPEN || stream_end(&r->stream, false, e);
}

void reply_write_logprobs(const struct reply *r, struct buffer *out)
{
    if (!r->chances)
        json_out_null(out, "logprobs");
    else
        reply_chances_write(r->chances, "logprobs", out);
}

void reply_free(struct reply *r)
{
    sampler_free(r->sampler);
    decoder_free(r->decoder);
    stream_free(&r->stream);
    ids_free(&r->ids);
    reply_chances_free(r->chances);
    *r = (struct reply){.end = REPLY_OPEN};
}
