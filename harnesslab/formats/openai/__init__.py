"""OpenAI's shapes: chat-completions logs, Responses logs, transcripts, and items that other formats embed."""
