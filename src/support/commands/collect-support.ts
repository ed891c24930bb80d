import { isatty } from 'node:tty'
import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'
import { Failure } from '../../ctl/exit-codes.ts'

/** Becomes support.cjs, which starts processes and reads files of the host; a client of the API does neither. */
export const collectSupport: Program<'file'> = async (line) => {
  const { path: socket } = requireLocalRoot(line, {
    does: 'collects the data of',
    reason: 'only root may read the journal and the state of the daemon',
  })
  const { file, output } = line.options
  if (file === '-' && isatty(1))
    throw new Failure('usage', 'standard output is a terminal; redirect it, or name a file with --file')
  const args = Object.entries({ socket, file, output }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  )
  become('support.cjs', args)
}
