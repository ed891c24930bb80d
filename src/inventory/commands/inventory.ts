import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** Beside the other commands of `host`. */
export const inventory: Noun = [
  defineCommand({
    name: 'host inventory',
    summary:
      'What the machine is made of: makers, models and serial numbers of its parts; for administrators',
    options: { refresh: { summary: 'Read it now instead of showing the last reading; takes seconds.' } },
    load: onHost(async () => (await import('./show.ts')).showInventory),
  }),
]
