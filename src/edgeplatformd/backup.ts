import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { shellWord } from '../base/printable.ts'
import { program } from '../base/program.ts'
import { makeBackup } from '../backup/make-backup.ts'
import { BackupRefused, RestoredInPart } from '../backup/refused.ts'
import { beginAnew, recoverState } from '../backup/replace-state.ts'
import { restoreBackup, type Restored } from '../backup/restore-backup.ts'
import { findDamagedPair } from '../certificate/self-signed.ts'
import { ConfigInvalid } from '../config/problem.ts'
import { amount, moment, plural } from '../ctl/layout.ts'
import { confirm } from '../ctl/confirm.ts'
import { exitCodes, Failure } from '../ctl/exit-codes.ts'
import { readBody } from '../ctl/request-body.ts'
import { createTerminal } from '../ctl/terminal.ts'
import { systemReason } from '../errors/system-reason.ts'
import { StartError } from '../errors/start-error.ts'
import { configuration } from './declarations.ts'
import { migrations } from './migrations.ts'
import { changeSecret } from '../platform/system/secret.ts'
import { removeOnSignal } from '../program/remove-on-signal.ts'
import { OutputFailed, writeError, writeOutput } from '../program/standard-output.ts'
import { isUsableSecret, secretFile } from '../secrets/secret-file.ts'
import { createSecret } from '../secrets/secrets.ts'
import { createLog } from '../system/log.ts'

// Set by the build.
declare const __VERSION__: string

const fewestCharacters = 12

interface Order {
  readonly file: string
  readonly passphraseFile: string | undefined
  readonly isConfirmed: boolean
}

/**
 * The process of `edgeplatformctl backup`, `restore`, `recover`, `fresh-start` and `secret change`, which work on files of this machine: a
 * backup is made while the platform runs, the others while it does not.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { file: { type: 'string' }, 'passphrase-file': { type: 'string' }, yes: { type: 'boolean' } },
    allowPositionals: true,
  })
  const order: Order = {
    file: values.file ?? '',
    passphraseFile: values['passphrase-file'],
    isConfirmed: values.yes === true,
  }
  const { config, configFile } = await load()
  if (positionals[0] === 'secret') await newSecret(order, config.state.directory)
  else if (positionals[0] === 'recover') await recover(order, config.state.directory)
  else if (positionals[0] === 'fresh-start') await freshStart(order, config.state.directory)
  else if (positionals[0] === 'restore') await restore(order, config.state.directory, configFile)
  else await backup(order, config, configFile)
}

async function load() {
  const commandLine = configuration.parseCommandLine([])
  const loaded = await configuration.loadConfig({ commandLine, environment: process.env })
  const named = process.env[`${program.environment}CONFIG`]
  return { config: loaded.config, configFile: named || `/etc/${program.folder}/config.yaml` }
}

type Config = Awaited<ReturnType<typeof load>>['config']

async function backup({ file, passphraseFile }: Order, config: Config, configFile: string): Promise<void> {
  const passphrase = await choosePassphrase(passphraseFile)
  const { certificateFile, keyFile } = config.api.tls
  const { members, sizeBytes } = await makeBackup({
    file,
    passphrase,
    configFile,
    stateDirectory: config.state.directory,
    namedFiles: [certificateFile, keyFile, config.metrics.tokenFile].filter((path) => path !== undefined),
    programVersion: __VERSION__,
    now: Date.now(),
    onBegin: removeOnSignal(),
  })
  writeOutput(`The backup is in ${file}: ${plural(members, 'file')}, ${amount(sizeBytes)}.\n`)
  writeOutput('Keep the passphrase elsewhere: without it the backup cannot be read.\n')
}

async function restore(
  { file, passphraseFile, isConfirmed }: Order,
  stateDirectory: string,
  configFile: string,
): Promise<void> {
  if (!isConfirmed)
    confirm(createTerminal(), {
      what: `The state in ${stateDirectory} is put aside, and the state of ${file} takes its place.`,
      ask: 'Restore it?',
      done: 'changed',
    })
  const passphrase = await readPassphrase(passphraseFile, 'Passphrase: ', true)
  const restored = await restoreBackup({
    file,
    passphrase,
    stateDirectory,
    configFile,
    migrations,
    now: Date.now(),
    log: createLog('error'),
    onBegin: removeOnSignal(),
  })
  writeOutput(describe(restored))
}

async function recover({ isConfirmed }: Order, stateDirectory: string): Promise<void> {
  if (!isConfirmed)
    confirm(createTerminal(), {
      what: `What can be read of the state in ${stateDirectory} takes its place, and the present one is put aside. With a backup, restore it instead.`,
      ask: 'Recover it?',
      done: 'changed',
    })
  const { formerState, tables, isSecretNew, isPairNew } = await recoverState({
    stateDirectory,
    migrations,
    now: Date.now(),
    log: createLog('error'),
    onBegin: removeOnSignal(),
    isSecretUsable: (folder) => isUsableSecret(join(folder, secretFile), 32),
    makeSecret: createSecret,
    isPairUsable: async (folder) => (await findDamagedPair(folder)) === undefined,
  })
  for (const { table, rows, isWhole } of tables)
    if (!isWhole) writeOutput(`Read in part: ${table}, ${plural(rows, 'row')}.\n`)
  const whole = tables.filter(({ isWhole }) => isWhole)
  writeOutput(
    `Read: ${plural(whole.length, 'table')}, ${plural(
      whole.reduce((sum, { rows }) => sum + rows, 0),
      'row',
    )}.\n`,
  )
  if (isSecretNew)
    writeOutput(
      'The secret is new: users log in again; values that were encrypted with the former one are SecretReplaced.\n',
    )
  if (isPairNew)
    writeOutput(
      'The next start makes a new certificate; hosts that pinned the former one are connected again.\n',
    )
  writeOutput(`The former state is in ${formerState}; remove it when all is well.\n`)
  writeOutput(`Next: systemctl start ${program.daemon}.socket ${program.daemon}.service\n`)
}

async function freshStart({ isConfirmed }: Order, stateDirectory: string): Promise<void> {
  if (!isConfirmed)
    confirm(createTerminal(), {
      what: `The platform begins with no users, projects and hosts; the state in ${stateDirectory} is put aside.`,
      ask: 'Begin anew?',
      done: 'changed',
    })
  const former = await beginAnew({
    stateDirectory,
    now: Date.now(),
    log: createLog('error'),
    onBegin: removeOnSignal(),
  })
  writeOutput(`The former state is in ${former}; remove it when nothing of it is missed.\n`)
  writeOutput(`Next: systemctl start ${program.daemon}.socket ${program.daemon}.service\n`)
}

async function newSecret({ isConfirmed }: Order, stateDirectory: string): Promise<void> {
  if (!isConfirmed)
    confirm(createTerminal(), {
      what: 'The platform gets a new secret: its users have to log in again, hosts do so by themselves.',
      ask: 'Change it?',
      done: 'changed',
    })
  const { sealed, unreadable } = await changeSecret({ stateDirectory, migrations, log: createLog('error') })
  writeOutput(`The secret is changed; ${plural(sealed, 'stored value')} sealed with the new one.\n`)
  if (unreadable > 0)
    writeOutput(
      `${plural(unreadable, 'stored value')} could not be read with the former secret either: SecretReplaced, as before.\n`,
    )
  writeOutput(`Next: systemctl start ${program.daemon}.socket ${program.daemon}.service\n`)
  writeOutput('Make a new backup: one from before has the former secret, and restores with it.\n')
}

function describe({ about, formerState, replaced }: Restored): string {
  const lines = [
    `The platform of ${moment(about.madeAt)} (version ${about.programVersion}) is restored.`,
    ...(formerState === undefined
      ? []
      : [`The former state is in ${formerState}; remove it when all is well.`]),
    ...replaced.map(({ path, former }) =>
      former === undefined ? `New: ${path}` : `Replaced: ${path}; the former one is ${former}`,
    ),
    `Next: ${program.daemon} --check-config && systemctl start ${program.daemon}.socket ${program.daemon}.service`,
    'Hosts log in by themselves. What users changed after the backup has to be done again.',
  ]
  return lines.map((line) => `${line}\n`).join('')
}

async function choosePassphrase(file: string | undefined): Promise<string> {
  const passphrase = await readPassphrase(file, 'Passphrase for the backup: ')
  if (passphrase.length < fewestCharacters)
    throw new Failure(
      'failed',
      `the passphrase has fewer than ${fewestCharacters} characters; the backup holds every secret of the platform. No backup was made`,
    )
  if (file !== undefined) return passphrase
  if ((await createTerminal().askSecretly('Repeat the passphrase: ')) !== passphrase)
    throw new Failure('failed', 'the two passphrases differ; no backup was made')
  return passphrase
}

const mark = '\ufeff'

/**
 * An editor that writes a byte order mark does not show it, and a passphrase that is typed has none.
 * @param opensEarlier after a second mark the passphrase of a file begins with one, as an earlier version took it from a file with one
 */
function requireNoMark(line: string, file: string, opensEarlier: boolean): string {
  if (!line.startsWith(mark)) return line
  if (opensEarlier && line.startsWith(mark + mark)) return line.slice(mark.length)
  throw new Failure(
    'failed',
    `${file} begins with a byte order mark (EF BB BF), which is no part of a passphrase; remove it: sed -i '1s/^\\xef\\xbb\\xbf//' ${shellWord(file)}. A backup that an earlier version made with this file opens with a file that has the mark twice: (umask 077; { printf '\\357\\273\\277'; cat ${shellWord(file)}; } > twice). Nothing was changed`,
  )
}

/** Bytes that are no UTF-8 must not all become one replacement character: then another passphrase opens the backup. */
function firstLine(bytes: Buffer, file: string): string {
  const end = bytes.indexOf('\n')
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      bytes.subarray(0, end < 0 ? bytes.length : end),
    )
    return text.replace(/\r$/, '')
  } catch {
    throw new Failure(
      'failed',
      `${file}: the passphrase is not UTF-8; write it as such, for example with: iconv -f ISO-8859-1 -t UTF-8 ${file}. A backup that an earlier version made with this file opens with a file that has U+FFFD (the bytes EF BF BD) for each such byte. Nothing was changed`,
    )
  }
}

/** The first line of a file, or the typed one. */
async function readPassphrase(
  file: string | undefined,
  question: string,
  opensEarlier = false,
): Promise<string> {
  if (file !== undefined) {
    const line = firstLine(readBody(file, '--passphrase-file'), file)
    return requirePassphrase(requireNoMark(line, file, opensEarlier))
  }
  const typed = await createTerminal().askSecretly(question)
  if (typed === undefined)
    throw new Failure('usage', 'there is no terminal to ask for the passphrase on; use --passphrase-file')
  return requirePassphrase(typed)
}

function requirePassphrase(passphrase: string): string {
  if (passphrase === '') throw new Failure('failed', 'the passphrase is empty')
  return passphrase
}

main().catch((error: unknown) => {
  const { message, code } = explain(error)
  if (message !== '') writeError(`${program.ctl}: ${message}\n`)
  process.exitCode = code
})

function explain(error: unknown): { message: string; code: number } {
  if (error instanceof Failure) return { message: error.message, code: exitCodes[error.exitName].code }
  if (error instanceof ConfigInvalid) return { message: error.message, code: exitCodes.badConfiguration.code }
  if (error instanceof OutputFailed)
    return { message: error.isClosed ? '' : error.message, code: error.isClosed ? 0 : exitCodes.failed.code }
  if (error instanceof BackupRefused || error instanceof StartError)
    return { message: `${error.message}. Nothing was changed`, code: exitCodes.failed.code }
  if (error instanceof RestoredInPart) return { message: error.message, code: exitCodes.failed.code }
  const { code, path } = error as NodeJS.ErrnoException
  if (code === undefined) throw error
  const where = path === undefined ? '' : `${path}: `
  return {
    message: `${where}${systemReason(error as NodeJS.ErrnoException)}. Nothing was changed`,
    code: exitCodes.failed.code,
  }
}
