import { defineCommand, type Noun } from '../command.ts'
import { onHost } from '../on-host.ts'

export const status: Noun = [
  defineCommand({
    name: 'status',
    summary: 'How this host is, on one screen, and what to do next',
    load: onHost(async () => (await import('../status.ts')).status),
  }),
]
