import { defineCommand, type Noun } from '../command.ts'
import { onHost } from '../on-host.ts'

export const status: Noun = [
  defineCommand({
    name: 'status',
    summary: 'Show the state of this host on one screen, and what to do next',
    load: onHost(async () => (await import('../status.ts')).status),
  }),
]
