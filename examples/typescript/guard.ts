// Guard the tools of a TypeScript agent: ask before every call, report its answer.
// Serve the handbook first: docs/how-to/guard-functions.md, "Other languages".

type Tool = (args: Record<string, unknown>) => Promise<unknown>;

export class Guard {
  private readonly url: string;
  private readonly token: string;
  private readonly conversation: string;

  constructor(url: string, token: string, conversation: string) {
    this.url = url;
    this.token = token;
    this.conversation = conversation;
  }

  /** Call a tool if the handbook allows it; otherwise return the text for the model. */
  async call(name: string, args: Record<string, unknown>, tool: Tool): Promise<unknown> {
    const own = { conversation: this.conversation, id: crypto.randomUUID() };
    const decided = await this.post("/before", { ...own, tool: name, arguments: args });
    if (decided.decision !== "carry_out") return decided.text;
    const report = { ...own, digest: decided.digest };
    try {
      // The decision counts for these arguments alone.
      const value = await tool(decided.arguments);
      await this.post("/after", { ...report, ok: true, value });
      return value;
    } catch (problem) {
      await this.post("/after", { ...report, ok: false, value: { error: String(problem) } });
      throw problem;
    }
  }

  private async post(path: string, body: unknown): Promise<any> {
    const answer = await fetch(this.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
}
