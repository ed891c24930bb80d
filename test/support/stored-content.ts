import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import type { Published, StagedUpload } from '../../src/content/store/content-store.ts'
import { createContentStore, type OpenStore } from '../../src/content/store/open-store.ts'
import { createRunner, type CommandRunner } from '../../src/system/runner.ts'
import {
  hexOfBytes,
  publishInProcess,
  verifyInProcess,
  writeUpload,
  type TestBundle,
} from './content-bundles.ts'
import { captureLog } from './https-server.ts'

/**
 * What tests do with a store, and what they see of it on the disk.
 * @param storeOf the store of now, since a test may open it again
 * @param folderOf has the folder `content` and the index
 */
export function storedContent(storeOf: () => OpenStore, folderOf: () => string) {
  return {
    async publish(bundle: TestBundle): Promise<Published & { readonly upload: StagedUpload }> {
      const upload = await storeOf().stage()
      const order = await writeUpload(upload, bundle)
      return { upload, ...(await storeOf().publish(upload, order)) }
    },
    /** Closes the store and removes its index. */
    async loseIndex(): Promise<void> {
      await storeOf().close()
      for (const end of ['', '-wal', '-shm']) await rm(join(folderOf(), `content.db${end}`), { force: true })
    },
    blobsOnDisk: async () => (await readdir(storeOf().blobs)).sort(),
    filesOf: (path: string) => readdir(join(folderOf(), 'content', path)),
    /** Of the published bundles, the newest first. */
    names: () =>
      storeOf()
        .index()
        .list()
        .map(({ name }) => name),
    fileOf: (blob: Buffer) => join(storeOf().blobs, hexOfBytes(blob)),
  }
}

export const hexesOf = (...blobs: Buffer[]) => blobs.map(hexOfBytes).sort()

/** What a test may replace of a store. */
export interface StoreParts {
  readonly bootId?: string
  readonly requirePlace?: () => Promise<void>
  readonly runner?: CommandRunner
  readonly program?: typeof publishInProcess
}

/** A store in a folder of its own, opened anew for each test of a file. */
export function storeInFolder() {
  let folder = ''
  let log = captureLog()
  let store: OpenStore | undefined
  const storeOf = (): OpenStore => store ?? start()

  /** A daemon's start, on the same disk. */
  function start(parts: StoreParts = {}): OpenStore {
    void store?.close()
    log = captureLog()
    store = createContentStore({
      ...{ root: join(folder, 'content'), indexFile: join(folder, 'content.db'), log: log.log },
      ...{ requirePlace: async () => undefined, reserve: { percent: 0, leastBytes: 0 }, bootId: 'boot 1' },
      ...{
        program: publishInProcess,
        verify: verifyInProcess,
        runner: createRunner(),
        definitions: undefined,
      },
      clock: { now: () => 5_000 },
      ...parts,
    })
    return store
  }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-content-'))
    start()
  })
  afterEach(async () => {
    await store?.close()
    store = undefined
    await rm(folder, { recursive: true })
  })

  return {
    start,
    get store() {
      return storeOf()
    },
    get log() {
      return log
    },
    get folder() {
      return folder
    },
    ...storedContent(storeOf, () => folder),
  }
}
