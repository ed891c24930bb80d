import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** Belongs to the noun `host`, whose other commands are in the room host. */
export const inventory: Noun = [
  defineCommand({
    name: 'host inventory',
    summary: 'Show the parts of the machine: makers, models and serial numbers; for administrators',
    options: {
      refresh: { summary: 'Read the inventory now instead of showing the last reading; takes seconds.' },
    },
    load: onHost(async () => (await import('./show.ts')).showInventory),
  }),
]
