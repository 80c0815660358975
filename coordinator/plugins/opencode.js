// COORD_PLUGIN: asks the coordinator before each tool of OpenCode runs. Written by
// `coord init --agent opencode`, taken out by `coord init --agent opencode --remove`.
import { plugin } from "{plugins}/opencode.mjs"

export const CoordPlugin = plugin("{socket}", "{profile}", ["{python}", "-P", "-m", "coordinator.cli.main", "up"])
