// A server of `minrnn serve` as OpenAI's package for JavaScript uses it.
//
//     node openai_client.mjs http://127.0.0.1:8080
//
// The model must be one of characters that knows "ROMEO:". Exits with 1 where an answer is not the one expected.

import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none", maxRetries: 0 });
const { data: [{ id: model }] } = await client.models.list();
const ask = { model, prompt: "ROMEO:", max_tokens: 60, seed: 3 };
const { choices: [{ text }], usage } = await client.completions.create(ask);
assert.equal(usage.completion_tokens, 60);
let streamed = "";
for await (const { choices } of await client.completions.create({ ...ask, stream: true })) streamed += choices[0].text;
assert.equal(streamed, text);
const first = await client.responses.create({ model, input: "ROMEO:", max_output_tokens: 60, seed: 3 });
assert.equal(first.output_text, text);
const second = await client.responses.create({ model, previous_response_id: first.id, input: "", max_output_tokens: 60 });
assert.equal(second.usage.input_tokens_details.cached_tokens, 65);
const stream = client.responses.stream({ model, input: "ROMEO:", max_output_tokens: 60, seed: 3 });
assert.equal((await stream.finalResponse()).output_text, text);
await assert.rejects(client.completions.create({ ...ask, model: "none" }), OpenAI.NotFoundError);
console.log(`${model}: ${JSON.stringify(text)}, whole, as a stream, and as responses`);
