import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { createPrepare, type PrepareOptions } from '../../src/cluster/desired/prepare.ts'
import type { Prepared, PrepareRequest } from '../../src/cluster/desired/prepared.ts'
import type { DesiredState } from '../../src/cluster/desired/desired-state.ts'
import type { Variable } from '../../src/definition/definition.ts'
import type { SlotDefinition } from '../../src/definition/slots/definition-store.ts'
import { createRunner } from '../../src/system/runner.ts'
import { clusterDefinition, infrastructure, type PackWish } from './cluster-definitions.ts'
import { captureLog } from './https-server.ts'
import { kit } from './kubernetes-kit.ts'
import { prepareProgram } from './programs.ts'

export interface PrepareWish {
  readonly request?: Partial<PrepareRequest>
  readonly options?: Partial<PrepareOptions>
  readonly signal?: AbortSignal
  /** What the slot says of its definition, where that is not so. */
  readonly slot?: { readonly sha256?: string; readonly file?: string }
}

const node = { name: 'edge-1', address: '10.0.0.5', endpoint: '10.0.0.9', poolName: 'control-plane-pool' }
const request: PrepareRequest = {
  ...{ archiveUploadPath: 'handle', variables: [], uid: 'c1', name: 'shop', generation: 1 },
  node: { ...node, labels: {}, taints: [], runsWorkloads: true },
  settings: { ntpServers: [], sshKeys: [] },
}

/**
 * Prepares clusters from archives as they lie in a slot, in a folder of its own for each test of a file. It has the helm of the kit, if
 * there is a kit.
 */
export function prepareBench() {
  let folder = ''
  let helm: string | undefined
  beforeEach(async () => {
    const found = await kit()
    helm = found && join(found.programs, 'helm')
    folder = mkdtempSync(join(tmpdir(), 'edgehostd-prepare-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  async function prepare(
    archive: Buffer,
    { request: wished, options, signal, slot }: PrepareWish = {},
  ): Promise<Prepared> {
    const file = join(folder, 'archive')
    const details = join(folder, 'details.json')
    writeFileSync(file, archive)
    writeFileSync(details, '[]')
    const sha256 = slot?.sha256 ?? createHash('sha256').update(archive).digest('hex')
    const definition: SlotDefinition = {
      ...{ uid: 'd1', slot: 'overridden', name: 'factory', version: '1.0.0', fileName: 'factory.tgz' },
      ...{ sha256, sizeBytes: archive.length, addedAt: 0, source: '', problems: [] },
    }
    const own = await createPrepare({
      ...{ folder: join(folder, 'cluster'), program: prepareProgram(), log: captureLog().log },
      definitions: { archiveOf: () => Promise.resolve({ file: slot?.file ?? file, details, definition }) },
      content: { findChart: () => Promise.resolve(undefined) },
      helm: () => Promise.resolve(helm),
      ...{ limits: {}, check: { seconds: 60, memoryMiB: 384 }, reserveBytes: 1 },
      ...{ runner: createRunner(), stopping: new AbortController().signal },
      ...options,
    })
    return own.prepare({ ...request, ...wished }, signal ?? new AbortController().signal)
  }

  return {
    /** Folder of the cluster room. */
    get folder() {
      return join(folder, 'cluster')
    },
    prepare,
    /** Prepares a definition of these packs beside the infrastructure. */
    prepareAddOns: (
      packs: readonly PackWish[],
      variables: readonly Variable[] = [],
      wish: PrepareWish = {},
    ) => prepare(clusterDefinition([...infrastructure, ...packs], variables), wish),
  }
}

/** Problems as `severity code message`. */
export const toldProblems = ({ problems }: Prepared): string[] =>
  problems.map(({ code, severity, message }) => `${severity} ${code} ${message}`)

/** The objects of the manifests of a pack, after it was kept. */
export function objectsOf({ folder, packs }: DesiredState, name: string): unknown[] {
  const pack = packs.find((each) => each.name === name)
  return (pack?.manifests ?? []).flatMap(({ file }) =>
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown),
  )
}
