import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { CommandLine, Program } from '../../ctl/command.ts'

/** `backup FILE`. */
export const runBackup: Program<'passphrase-file'> = async (line) => run(line, 'backup', [])

/** `restore FILE`. */
export const runRestore: Program<'passphrase-file' | 'yes'> = async (line) =>
  run(line, 'restore', line.options.yes === undefined ? [] : ['--yes'])

/** A command that works on the state and names no file. */
const onState =
  (action: string): Program<'yes'> =>
  async (line) => {
    requireLocalRoot(line, whole)
    become('backup.cjs', [action, ...(line.options.yes === undefined ? [] : ['--yes'])])
  }

/** `secret change`. */
export const runSecretChange = onState('secret')

/** `recover`. */
export const runRecover = onState('recover')

/** `fresh-start`. */
export const runFreshStart = onState('fresh-start')

const whole = { does: 'works on', reason: 'the state of the daemon is for root' }

/** Becomes backup.cjs, which reads and writes files of the platform; a client of the API does neither. */
function run(line: CommandLine<'passphrase-file'>, action: string, more: readonly string[]): never {
  requireLocalRoot(line, whole)
  const file = line.options['passphrase-file']
  const passphrase = file === undefined ? [] : [`--passphrase-file=${file}`]
  become('backup.cjs', [action, `--file=${line.arguments[0] ?? ''}`, ...passphrase, ...more])
}
