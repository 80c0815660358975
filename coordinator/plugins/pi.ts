// COORD_PLUGIN: asks the coordinator before each tool of pi runs. Written by
// `coord init --agent pi`, taken out by `coord init --agent pi --remove`.
//
// When nobody answers the handler throws, and pi stops the call.
import net from "node:net"
import { spawnSync } from "node:child_process"

const SOCKET = "{socket}"
const PYTHON = "{python}"
const SESSION = `pi${process.pid}${Date.now().toString(36)}`

function ask(event: string, said: object): Promise<any> {
  const body = Buffer.from(JSON.stringify(said))
  const token = process.env.COORD_AGENT_TOKEN || "-"
  return new Promise((resolve, reject) => {
    const link = net.createConnection(SOCKET)
    const parts: Buffer[] = []
    link.setTimeout(600_000, () => link.destroy(new Error("no answer in time")))
    link.on("connect", () => {
      link.write(`hook {profile}:${event} ${token} ${body.length}\n`)
      link.write(body)
    })
    link.on("error", reject)
    link.on("close", () => reject(new Error("the coordinator hung up")))
    link.on("data", (part: Buffer) => {
      parts.push(part)
      const all = Buffer.concat(parts)
      const end = all.indexOf(10)
      if (end < 0) return
      const [code, out, err] = all.subarray(0, end).toString().split(" ").map(Number)
      const rest = all.subarray(end + 1)
      if (rest.length < out + err) return
      link.destroy()
      if (code !== 0) return resolve({ deny: rest.subarray(out, out + err).toString() })
      resolve(out ? JSON.parse(rest.subarray(0, out).toString()) : {})
    })
  })
}

export default function (pi: any) {
  const who = (ctx: any) => ({ session_id: SESSION, cwd: ctx?.cwd ?? process.cwd() })
  const started = ask("hello", {}).catch(() => {
    spawnSync(PYTHON, ["-m", "coordinator.cli.main", "up"], { stdio: "ignore" })
  })
  pi.on("tool_call", async (event: any, ctx: any) => {
    await started
    const said = await ask("before", {
      ...who(ctx), tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId,
    })
    if (said.deny) return { block: true, reason: said.deny }
    if (said.command) event.input.command = said.command
  })
  pi.on("tool_result", async (event: any, ctx: any) => {
    await ask("after", {
      ...who(ctx), tool_name: event.toolName, tool_input: event.input ?? {},
      tool_use_id: event.toolCallId, tool_response: JSON.stringify(event.content ?? "").slice(0, 20_000),
    }).catch(() => ({}))
  })
  pi.on("agent_end", async (_event: any, ctx: any) => {
    await ask("end", who(ctx)).catch(() => ({}))
  })
}
