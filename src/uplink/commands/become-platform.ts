import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { CommandLine, Program } from '../../ctl/command.ts'
import { Failure } from '../../ctl/exit-codes.ts'

/** `platform connect URL`. */
export const connectPlatform: Program<'token-file' | 'ca-file' | 'proxy'> = async (line) => {
  const { 'token-file': token, 'ca-file': authorities, fingerprint, proxy } = line.options
  if (authorities !== undefined && fingerprint !== undefined)
    throw new Failure('usage', '--ca-file and --fingerprint exclude each other')
  const given = { 'token-file': token, 'ca-file': authorities, fingerprint, proxy }
  run(line, 'connect', [...optionsOf(given), '--', line.arguments[0] ?? ''])
}

/** `platform disconnect`. */
export const disconnectPlatform: Program<'yes'> = async (line) =>
  run(line, 'disconnect', line.options.yes === undefined ? [] : ['--yes'])

/** Becomes platform.cjs, which writes files of the host and restarts its daemon; a client of the API does neither. */
function run(line: CommandLine, action: string, more: readonly string[]): never {
  const { path: socket } = requireLocalRoot(line, {
    does: 'changes',
    reason: 'only root may change the configuration of the daemon',
  })
  const { output, 'no-color': noColor } = line.options
  const common = [...optionsOf({ socket, output }), ...(noColor === undefined ? [] : ['--no-color'])]
  become('platform.cjs', [action, ...common, ...more])
}

const optionsOf = (given: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
