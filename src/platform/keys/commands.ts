import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'
import { expiry } from '../commands/options.ts'

export const apiKeys: Noun = [
  defineCommand({
    name: 'apikey list',
    summary: 'List the API keys',
    options: { limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listKeys),
  }),
  defineCommand({
    name: 'apikey create',
    arguments: ['NAME'],
    summary: 'Make an API key for scripts, and print it; it is shown only once',
    details: 'It has the roles of its user, makes no keys and changes no password.',
    options: {
      expiry,
      for: {
        value: 'USER',
        summary: 'The user of the key, by e-mail or uid; without it you. Root has to name one.',
      },
    },
    load: onHost(async () => (await import('./commands-manage.ts')).createKey),
  }),
  ...(['enable', 'disable'] as const).map((verb) =>
    defineCommand({
      name: `apikey ${verb}`,
      arguments: ['KEY'],
      completes: offered.key,
      summary: verb === 'enable' ? 'Let an API key be used again' : 'Refuse an API key until it is enabled',
      load: onHost(async () => (await import('./commands-manage.ts')).setState(verb === 'enable')),
    }),
  ),
  defineCommand({
    name: 'apikey delete',
    arguments: ['KEY'],
    completes: offered.key,
    summary: 'Delete an API key',
    options: { yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteKey),
  }),
]
