import { defineCommand, type Noun } from './command.ts'
import { onHost } from './on-host.ts'
import type { Options } from './options.ts'
import { program } from '../base/program.ts'

const body = {
  data: { value: 'FILE', summary: 'The JSON body; - is standard input.', completes: 'file' },
} as const satisfies Options

export const api: Noun = [
  defineCommand({
    name: 'api get',
    arguments: ['PATH'],
    summary: 'GET a path of the API and print the reply unchanged',
    load: onHost(async () => (await import('./api.ts')).getApi),
  }),
  ...(['POST to', 'PUT to', 'PATCH', 'DELETE'] as const).map((verb) => {
    const [method = ''] = verb.split(' ')
    return defineCommand({
      name: `api ${method.toLowerCase()}`,
      arguments: ['PATH'],
      summary: `${verb} a path of the API`,
      options: body,
      load: onHost(async () => (await import('./api.ts')).sendApi(method)),
    })
  }),
]

/** Commands about the command line itself. */
export const ofProgram: Noun = [
  defineCommand({
    name: 'version',
    summary: 'Print the version',
    load: async () => (await import('./help.ts')).printVersion,
  }),
  defineCommand({
    name: 'completion bash',
    summary: `Print the completion of bash: source <(${program.ctl} completion bash)`,
    load: async () => (await import('./help.ts')).printCompletion,
  }),
  defineCommand({
    name: 'completion names',
    arguments: ['[COMMAND...]'],
    summary:
      'Print the uids or names that the completion offers for a command, from the daemon of this machine',
    load: async () => (await import('./on-host.ts')).printNames,
  }),
  defineCommand({
    name: 'help',
    arguments: ['[COMMAND...]'],
    summary: `Show how to use ${program.ctl}, a group of commands or one command`,
    load: async () => (await import('./help.ts')).printHelp,
  }),
]

/** Commands that end a login. */
export const sessionEnds: Noun = [
  defineCommand({
    name: 'logout',
    summary: `End the session on the ${program.noun} of --host and remove its tokens`,
    load: onHost(async () => (await import('./logout.ts')).logout),
  }),
  defineCommand({
    name: 'forget',
    arguments: ['HOST[:PORT]'],
    summary: `Remove the stored public key of a ${program.noun}, and the session there`,
    details: `For a ${program.noun} that was reinstalled. The next command for it shows its new fingerprint and asks for confirmation.`,
    load: onHost(async () => (await import('./logout.ts')).forget),
  }),
]
