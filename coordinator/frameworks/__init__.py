"""Leases for agent frameworks and for business code: each module is one framework's own way.

`mutex` and `asynchronous` need nothing but coord; `langgraph`, `openai_agents` and `claude_sdk`
need an extra each. What holds and what does not is in `context_archive/frameworks.md`.
"""
