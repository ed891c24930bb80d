import type { Program } from './command.ts'
import type { HostProgram } from './context.ts'

/** Loads a program that talks to a host, together with the client. */
export const onHost =
  <Name extends string = never>(load: () => Promise<HostProgram<Name>>) =>
  async (): Promise<Program<Name>> => {
    const { runOnHost } = await import('./run-on-host.ts')
    const program = await load()
    return (line, table) => runOnHost(line, program, table, process.env)
  }
