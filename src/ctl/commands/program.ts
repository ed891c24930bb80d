import { defineCommand, type Noun } from '../command.ts'

/** Commands about edgehostctl itself. */
export const program: Noun = [
  defineCommand({
    name: 'version',
    summary: 'Print the version',
    load: async () => (await import('../version.ts')).printVersion,
  }),
  defineCommand({
    name: 'completion bash',
    summary: 'Print the completion of bash: source <(edgehostctl completion bash)',
    load: async () => (await import('../completion.ts')).printCompletion,
  }),
  defineCommand({
    name: 'help',
    arguments: ['[COMMAND...]'],
    summary: 'Show how to use edgehostctl, a group of commands or one command',
    load: async () => (await import('../help.ts')).printHelp,
  }),
]
