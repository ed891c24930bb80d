import { defineCommand, type Noun } from '../../ctl/command.ts'

export const config: Noun = [
  defineCommand({
    name: 'config check',
    arguments: ['[FILE]'],
    summary: 'List every problem of the configuration of this host, with file and line',
    details: 'The same as edgehostd --check-config; FILE is checked instead of /etc/edgehostd/config.yaml.',
    completes: 'file',
    load: async () => (await import('./check.ts')).checkConfig,
  }),
]
