"""MCP, LangChain, OpenAI Agents, Pydantic AI, telemetry, metrics, logs."""
