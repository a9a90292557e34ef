"""Language models and embedders over the network and on this machine; the only home of vendor SDKs.

registry          the providers there are, and building them (`configuration`)
remote_provider   one provider over the network: its models (`windows`, `model_options`) and its chat
                  model (`partial_reply`)
vendor, vendors   the kinds of providers, one module each; the built-in model; local servers
wire              protocols: a request as JSON, a reader of the reply, streaming, retries
http              requests: base URL, client with limits, SDK, translation of errors
embedders         texts to vectors: by an ONNX model on this machine, or by a server
pricing           costs of requests, and estimates of tokens

Import from the module you need. Nothing slow is imported by itself: httpx2 takes 0.15 s, openai 2.7 s
and anthropic 5.2 s to load on a cold disk (`ProviderRegistry.preload` does it in the background).
"""
