"""A server of `minrnn serve` as OpenAI's package for Python uses it.

    python openai_client.py http://127.0.0.1:8080

The model must be one of characters that knows "ROMEO:", such as models/shakespeare.minrnn. Prints what it did; exits with 1 where an answer is not the one
expected.
"""

import sys
import threading
import time
import urllib.request

import openai

address = sys.argv[1]
client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0)


def metric(name):
    with urllib.request.urlopen(address + "/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith(f"minrnn_{name}{{")).rsplit(" ", 1)[1])


def expect(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: expected {expected!r}, found {found!r}")
    print(f"{what}: as expected")


(model,) = (model.id for model in client.models.list())
ask = {"model": model, "prompt": "ROMEO:", "max_tokens": 60, "seed": 3}
whole = client.completions.create(**ask)
text = whole.choices[0].text
print(f"{model}: {text!r}")
expect((whole.usage.prompt_tokens, whole.usage.completion_tokens), (6, 60), "usage")
expect(whole.choices[0].finish_reason, "length", "why it ended")
streamed = client.completions.create(**ask, stream=True)
expect("".join(event.choices[0].text for event in streamed), text, "a stream")
scored = client.completions.create(**{**ask, "max_tokens": 0, "echo": True, "logprobs": 1})
expect(len(scored.choices[0].logprobs.token_logprobs), 6, "logprobs of a prompt")
several = client.completions.create(**{**ask, "prompt": ["ROMEO:", "JULIET:"], "n": 2})
expect([choice.index for choice in several.choices], [0, 1, 2, 3], "choices")
expect(several.choices[0].text, text, "the first of several")

settings = {"max_output_tokens": 60, "extra_body": {"seed": 3}}
first = client.responses.create(model=model, input="ROMEO:", **settings)
expect(first.output_text, text, "a response")
second = client.responses.create(model=model, previous_response_id=first.id, input="", **settings)
expect(second.usage.input_tokens_details.cached_tokens, 65, "what was not read again")
with client.responses.stream(model=model, input="ROMEO:", **settings) as stream:
    deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    expect((deltas, stream.get_final_response().output_text), (text, text), "a response as a stream")

for wrong, kind in [({"model": "none"}, openai.NotFoundError), ({"temperature": -1}, openai.BadRequestError)]:
    try:
        client.completions.create(**{**ask, **wrong})
        sys.exit(f"{wrong} was not refused")
    except kind as refused:
        print(f"refused: {refused.body['message']}")

with client.completions.create(**{**ask, "max_tokens": 1_000_000}, stream=True) as stream:
    next(iter(stream))
deadline = time.time() + 60
while metric("sessions_running") and time.time() < deadline:
    time.sleep(0.01)
expect(metric("sessions_running"), 0, "texts whose client has left")

expected = {prompt: client.completions.create(**{**ask, "prompt": prompt}).choices[0].text for prompt in ["ROMEO:", "JULIET:", "KING", "\n"]}
differing = []


def go_on(prompt):
    found = client.completions.create(**{**ask, "prompt": prompt}).choices[0].text
    if found != expected[prompt]:
        differing.append(prompt)


threads = [threading.Thread(target=go_on, args=(prompt,)) for prompt in list(expected) * 25]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
expect(differing, [], "a hundred clients at once")
