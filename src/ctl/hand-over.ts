import { become } from './become.ts'
import type { Program } from './command.ts'
import { Failure } from './exit-codes.ts'

/** Replaces this process by the program that makes and reads archives with the code of the daemon. */
export const handOver: Program = async (
  { command, arguments: words, options, lists = {}, outputFile },
  table,
) => {
  const refused = (['host', 'user', 'fingerprint', 'socket'] as const).find(
    (name) => options[name] !== undefined,
  )
  if (refused !== undefined)
    throw new Failure(
      'usage',
      `${command.name} does not take --${refused}: it works on files of this machine`,
    )
  const single = Object.entries(options).map(([name, value]) =>
    table.options.get(name)?.value === undefined ? `--${name}` : `--${name}=${value}`,
  )
  const many = Object.entries(lists).flatMap(([name, values]) => values.map((value) => `--${name}=${value}`))
  const archive = outputFile === undefined ? [] : [`--archive=${outputFile}`]
  become('definition.cjs', [...single, ...many, ...archive, '--', ...command.name.split(' '), ...words])
}
