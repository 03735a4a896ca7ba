"""Engines: model servers behind the port `Engine`.

Read `transport` (one attempt over HTTP), `refusals` (what an error answer means), `chat` and `stream` (the OpenAI
dialect), then `openai`, `sglang` and `embedded`. `catalogue` makes any of them from what a registration says.
"""
