import { program } from '../../base/program.ts'
import { defineCommand, type Noun } from '../command.ts'

/** Commands about the command line itself. */
export const ofProgram: Noun = [
  defineCommand({
    name: 'version',
    summary: 'Print the version',
    load: async () => (await import('../version.ts')).printVersion,
  }),
  defineCommand({
    name: 'completion bash',
    summary: `Print the completion of bash: source <(${program.ctl} completion bash)`,
    load: async () => (await import('../completion.ts')).printCompletion,
  }),
  defineCommand({
    name: 'completion names',
    arguments: ['[COMMAND...]'],
    summary:
      'Print the uids or names that the completion offers for a command, from the daemon of this machine',
    load: async () => (await import('../names.ts')).printNames,
  }),
  defineCommand({
    name: 'help',
    arguments: ['[COMMAND...]'],
    summary: `Show how to use ${program.ctl}, a group of commands or one command`,
    load: async () => (await import('../help.ts')).printHelp,
  }),
]
