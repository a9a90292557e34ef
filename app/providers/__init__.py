"""Language models over the network, and the only home of vendor SDKs and their errors.

registry            which providers exist, and building them from configuration
remote              one provider over the network: its models, its chat model
streaming           the one loop around every reply: retries, terminal markers, error translation
openai_responses    the three wires: a request as JSON, and a reader of the events that stream back
openai_chat         (its reader is `openai_chat_reader`)
anthropic_messages  (its reader is `anthropic_reader`)
transcript          a conversation prepared for any wire: tool pairs, attachments, raw replies
connection          the vendor's SDK on our own HTTP client; imported on first use
http                that client: no redirects, no encodings, caps and time limits
faults, verdicts    what went wrong, as a `ProviderError`
retry               when a request is sent again, and after how long
dialect             parameters that a server has refused, left out from then on
base_url            where a key may go
prices, tokens      what a request costs, and how long a text is
local_servers       model servers running on this machine, offered and never used unasked
local_embedder      texts to vectors on this machine, by a model in an `embedder_folder`
remote_embedder     the same by a server: `embedding_models`, `embedding_reply`, `request_pace`
token_chunks        where a long text is cut; `estimated_tokens` where there is no tokeniser
recall              the built-in model that quotes; extractive* is the one that summarises

Import what you need from its module; nothing here is imported by itself, because `http` takes
0.15 s, openai 2.7 s and anthropic 5.2 s to load on a cold disk.
"""
