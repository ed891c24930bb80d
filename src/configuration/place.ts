// Work of the verb `place-configuration`. Each file is replaced by a rename, and each part is done again where it was done: a run that was cut off, by a
// kill or a power cut, leaves the former or the new content of each file, and the next run does what is left. A run of a daemon that was killed may
// still go on when the next daemon begins one: they wait for each other, and an older revision changes nothing.

import { hash } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isThere, replaceFile, syncFolder } from '../system/files.ts'
import { createRunner } from '../system/runner.ts'
import { VerbRefused } from '../verbs/verb.ts'
import {
  authorityFolder,
  authorityProgram,
  environmentFile,
  lockFile,
  proxyUnits,
  trustFolder,
  type Placement,
} from './placement.ts'

const waitMs = 120_000
const updateMs = 120_000
const restartMs = 90_000
/** Our files, in the folder of the certificates and, with another ending, in the folder of the authorities. */
const ownName = /^edgehostd-[0-9a-f]{16}\.(?:crt|pem)$/

const { run } = createRunner()

/** @returns the units that were restarted */
export async function placeFiles({
  revision,
  environment,
  certificates,
}: Placement): Promise<readonly string[]> {
  const lock = new DatabaseSync(lockFile)
  try {
    // In this mode the lock outlasts the transaction: the revision is noted first, also for a run that fails.
    lock.exec(`PRAGMA busy_timeout = ${waitMs}; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE`)
    const { user_version: last } = lock.prepare('PRAGMA user_version').get() as { user_version: number }
    if (last > revision)
      throw new VerbRefused(`the revision ${last} of the configuration is put in place instead`)
    lock.exec(`PRAGMA user_version = ${revision}; COMMIT`)
    await placeEnvironment(environment)
    await placeAuthorities(certificates)
    return await restartUnits()
  } finally {
    lock.close()
  }
}

async function placeEnvironment(text: string): Promise<void> {
  if (text !== '') {
    await replaceFile(environmentFile, text, 0o600)
    return
  }
  await rm(environmentFile, { force: true })
  await syncFolder(dirname(environmentFile))
}

async function placeAuthorities(certificates: readonly string[]): Promise<void> {
  const ownIn = async (folder: string) =>
    (await readdir(folder).catch(() => [])).filter((name) => ownName.test(name))
  const present = await ownIn(authorityFolder)
  const trusted = await ownIn(trustFolder)
  if (certificates.length + present.length + trusted.length === 0) return
  if (!(await isThere(authorityProgram)))
    throw new VerbRefused(`${authorityProgram} is not on this host; install the package ca-certificates`)
  const wanted = new Map(
    certificates.map((pem) => [`edgehostd-${hash('sha256', pem, 'hex').slice(0, 16)}.crt`, pem]),
  )
  await mkdir(authorityFolder, { recursive: true })
  for (const [name, pem] of wanted) await replaceFile(join(authorityFolder, name), pem, 0o644)
  const gone = present.filter((name) => !wanted.has(name))
  for (const name of gone) await rm(join(authorityFolder, name), { force: true })
  await syncFolder(authorityFolder)
  // It leaves links of certificates that are gone, in the folder and in its hashes.
  const isLeft = trusted.some((name) => !wanted.has(name.replace(/pem$/, 'crt')))
  const { exitCode, stdout, stderr } = await run(
    authorityProgram,
    isLeft || gone.length > 0 ? ['--fresh'] : [],
    {
      timeoutMs: updateMs,
    },
  )
  if (exitCode !== 0)
    throw new VerbRefused(
      `update-ca-certificates ended with ${exitCode ?? 'a signal'}: ${`${stdout}\n${stderr}`.trim().split('\n').at(-1) || 'without a message'}`,
    )
  const found = await ownIn(trustFolder)
  const missing = [...wanted.keys()].filter((name) => !found.includes(name.replace(/crt$/, 'pem')))
  if (missing.length > 0)
    throw new VerbRefused(`update-ca-certificates has not taken ${missing.join(', ')} of ${authorityFolder}`)
}

async function restartUnits(): Promise<readonly string[]> {
  // The drop-ins may be newer than what systemd has read.
  await systemctl(['daemon-reload'])
  const active = await activeUnits((args) => run('systemctl', args, { timeoutMs: 10_000 }))
  for (const unit of active) await systemctl(['try-restart', unit])
  return active
}

async function systemctl(args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await run('systemctl', args, { timeoutMs: restartMs })
  if (exitCode === 0) return
  const [, unit] = args
  throw new VerbRefused(
    `systemctl ${args.join(' ')} ended with ${exitCode ?? 'a signal'}: ${stderr.trim().split('\n').at(-1) || 'without a message'}${unit === undefined ? '' : `; see: journalctl -u ${unit}`}`,
  )
}

/** Those of `proxyUnits` that run, in their order; all of them where systemd does not say it. */
export async function activeUnits(
  ask: (
    args: readonly string[],
  ) => Promise<{ readonly exitCode: number | undefined; readonly stdout: string }>,
): Promise<readonly string[]> {
  const { exitCode, stdout } = await ask(['show', '--property=Id,ActiveState', '--', ...proxyUnits])
  if (exitCode !== 0) return proxyUnits
  const states = stdout.split('\n\n').map((text) => ({
    unit: /^Id=(.*)$/m.exec(text)?.[1],
    // One that fails and comes again by itself is between.
    isActive: /^ActiveState=(?:active|activating|reloading)$/m.test(text),
  }))
  return proxyUnits.filter((unit) => states.some((each) => each.unit === unit && each.isActive))
}
