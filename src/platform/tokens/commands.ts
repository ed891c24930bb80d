import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'
import { expiry, project } from '../commands/options.ts'

export const tokens: Noun = [
  defineCommand({
    name: 'token list',
    summary: 'List the tokens with which hosts are registered',
    options: { limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listTokens),
  }),
  defineCommand({
    name: 'token create',
    arguments: ['NAME'],
    summary: 'Make a token with which hosts are registered, and print it; it is shown only once',
    details: 'Without --expiry it ends in seven days.',
    options: {
      project,
      expiry,
      'maximum-hosts': { value: 'N', summary: 'Number of hosts that may use it; 0, the default, is any.' },
    },
    load: onHost(async () => (await import('./commands-manage.ts')).createToken),
  }),
  ...(['enable', 'disable'] as const).map((verb) =>
    defineCommand({
      name: `token ${verb}`,
      arguments: ['TOKEN'],
      completes: offered.token,
      summary:
        verb === 'enable'
          ? 'Let hosts be registered with a token again'
          : 'Refuse a token until it is enabled; its hosts stay',
      load: onHost(async () => (await import('./commands-manage.ts')).setState(verb === 'enable')),
    }),
  ),
  defineCommand({
    name: 'token delete',
    arguments: ['TOKEN'],
    completes: offered.token,
    summary: 'Delete a token; hosts that were registered with it stay',
    options: { yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteToken),
  }),
]
