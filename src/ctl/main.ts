import { existsSync } from 'node:fs'
import { isatty } from 'node:tty'
import { OutputFailed, writeError, writeOutput } from '../program/standard-output.ts'
import { parseCommandLine, type CommandLine } from './command-line.ts'
import { isDefinitionCommand, isSwitch, type OptionName } from './commands.ts'
import { exitCodes, Failure } from './exit-codes.ts'
import { outputFailure } from './output.ts'
import { eachLine } from './text.ts'

// Baked in by the build.
declare const __VERSION__: string

/** The process edgehostctl. What needs no host is answered before anything else is loaded. */
async function main(): Promise<void> {
  const line = parseCommandLine(process.argv.slice(2))
  const { command } = line
  if (command === 'version') writeOutput(`edgehostctl ${__VERSION__}\n`)
  else if (command === 'help') await help(line)
  else if (command === 'completion bash') writeOutput((await import('./completion.ts')).bashCompletion())
  else if (command === 'config check') checkConfig(line)
  else if (command === 'sessions revoke-all') await revokeAll(line)
  else if (command === 'support') await collectSupport(line)
  else if (isDefinitionCommand(command)) workOnDefinition(line)
  else {
    const { runCommand } = await import('./run.ts')
    process.exitCode = exitCodes[await runCommand(line, command, process.env)].code
  }
}

async function help({ arguments: words, options }: CommandLine): Promise<void> {
  const { helpText } = await import('./help.ts')
  const { readPaper } = await import('./terminal.ts')
  writeOutput(helpText(words, readPaper(process.env, options['no-color'] !== undefined).columns))
}

/** The daemon's own check: one code that judges a configuration. */
function checkConfig({ arguments: [file] }: CommandLine): void {
  become('main.cjs', ['--check-config', ...(file === undefined ? [] : [`--config=${file}`])])
}

/** Another host than this one, where the command line or the environment names one. */
async function otherHost(options: CommandLine['options']): Promise<string | undefined> {
  const { chooseTarget } = await import('./target.ts')
  const target = chooseTarget(options, process.env, () => '')
  return target.kind === 'socket' ? undefined : target.host
}

/** By the daemon's own program, which knows its state folder: a daemon that runs would have to be asked with a token. */
async function revokeAll({ options }: CommandLine): Promise<void> {
  const host = await otherHost(options)
  if (host !== undefined)
    throw new Failure(
      'usage',
      `sessions revoke-all works on the host it runs on: ssh root@${host} edgehostctl sessions revoke-all`,
    )
  if (process.getuid?.() !== 0)
    throw new Failure(
      'notLoggedIn',
      'the state of the daemon is for root: sudo edgehostctl sessions revoke-all',
    )
  become('main.cjs', ['--end-sessions'])
}

/** By the program that looks at the whole host: it starts processes and reads files, a client does neither. */
async function collectSupport({ options }: CommandLine): Promise<void> {
  const { chooseTarget } = await import('./target.ts')
  const target = chooseTarget(options, process.env, () => '')
  if (target.kind !== 'socket')
    throw new Failure(
      'usage',
      `support collects the data of the host it runs on: ssh root@${target.host} edgehostctl support`,
    )
  if (process.getuid?.() !== 0)
    throw new Failure(
      'notLoggedIn',
      'only root may read the journal and the state of the daemon: sudo edgehostctl support',
    )
  if (options.file === '-' && isatty(1))
    throw new Failure('usage', 'standard output is a terminal; redirect it, or name a file with --file')
  const given = { socket: target.path, file: options.file, output: options.output }
  const args = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  )
  become('support.cjs', args)
}

/** By the program that packs and unpacks definitions, which the daemon does too and a client does not. */
function workOnDefinition({ command, arguments: words, options, lists = {} }: CommandLine): void {
  const refused = (['host', 'user', 'fingerprint', 'socket'] as const).find(
    (name) => options[name] !== undefined,
  )
  if (refused !== undefined)
    throw new Failure('usage', `${command} does not take --${refused}: it works on files of this machine`)
  const single = Object.entries(options).map(([name, value]) =>
    isSwitch(name as OptionName) ? `--${name}` : `--${name}=${value}`,
  )
  const many = Object.entries(lists).flatMap(([name, values]) => values.map((value) => `--${name}=${value}`))
  become('definition.cjs', [...single, ...many, '--', command.replace('definition ', ''), ...words])
}

/** Becomes another program of the package by execve(2): there is no child process, and nothing comes after it. */
function become(program: string, args: readonly string[]): void {
  const path = `${import.meta.dirname}/${program}`
  if (!existsSync(path))
    throw new Failure(
      'failed',
      'this command looks at the host it runs on and is not part of this installation; run it on the host, where the package edgehostd has it',
    )
  if (!process.execve)
    throw new Failure('failed', `this command cannot run on ${process.platform}; use Linux or macOS`)
  process.execve(process.execPath, [process.execPath, path, ...args], process.env)
}

main().catch((error: unknown) => {
  const failure = error instanceof OutputFailed ? outputFailure(error) : error
  if (!(failure instanceof Failure)) throw failure
  if (failure.message !== '') writeError(`edgehostctl: ${eachLine(failure.message)}\n`)
  process.exitCode = exitCodes[failure.exitName].code
})
