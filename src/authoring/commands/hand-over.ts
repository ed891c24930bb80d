import { become } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'
import { Failure } from '../../ctl/exit-codes.ts'

/** Replaces this process by the program that packs and unpacks definitions with the code of the daemon. */
export const handOver: Program = async ({ command, arguments: words, options, lists = {} }, table) => {
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
  become('definition.cjs', [...single, ...many, '--', command.name.replace('definition ', ''), ...words])
}
