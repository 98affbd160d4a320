"""The MCP server and gateway."""
