// COORD_PLUGIN: asks the coordinator before each tool of pi runs. Written by
// `coord init --agent pi`, taken out by `coord init --agent pi --remove`.
//
// When nobody answers the handler throws, and pi stops the call.
// @ts-ignore: plain JavaScript
import { ask as question, asking } from "{plugins}/ask.mjs"

const SOCKET = "{socket}"
const PYTHON = "{python}"
const SESSION = `pi${process.pid}${Date.now().toString(36)}`

const ask: (event: string, said: object) => Promise<any> = asking(
  SOCKET, "{profile}", [PYTHON, "-P", "-m", "coordinator.cli.main", "up"], process.cwd())

export default function (pi: any) {
  const who = (ctx: any) => ({ session_id: SESSION, cwd: ctx?.cwd ?? process.cwd() })
  const started = ask("hello", {}).catch(() => ({}))
  pi.on("tool_call", async (event: any, ctx: any) => {
    await started
    const said = await ask("before", {
      ...who(ctx), tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId,
    })
    if (said.deny) return { block: true, reason: said.deny }
  })
  pi.on("tool_result", async (event: any, ctx: any) => {
    await ask("after", {
      ...who(ctx), tool_name: event.toolName, tool_input: event.input ?? {},
      tool_use_id: event.toolCallId, tool_response: JSON.stringify(event.content ?? "").slice(0, 20_000),
    }).catch(() => ({}))
  })
  pi.on("agent_end", async (_event: any, ctx: any) => {
    await question(SOCKET, "{profile}", "end", who(ctx)).catch(() => ({}))  // nothing is started for it
  })
}
