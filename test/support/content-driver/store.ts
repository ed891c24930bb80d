import { join } from 'node:path'
import type { ContentProgram } from '../../../src/content/program/content-program.ts'
import type { ContentDefinitions } from '../../../src/content/store/definitions.ts'
import { createContentStore } from '../../../src/content/store/open-store.ts'
import { verifyInProcess } from '../content-bundles.ts'
import { createLog } from '../../../src/system/log.ts'

/** The store of a folder, without sync(1): a kill loses nothing of what the kernel has. */
export const driverStore = (
  folder: string,
  program: Pick<ContentProgram, 'publish'>,
  definitions?: ContentDefinitions,
) =>
  createContentStore({
    ...{
      root: join(folder, 'content'),
      requirePlace: async () => undefined,
      indexFile: join(folder, 'content.db'),
      bootId: 'boot',
      program,
      verify: verifyInProcess,
    },
    ...{ reserve: { percent: 0, leastBytes: 0 }, definitions, clock: { now: Date.now } },
    runner: { run: async () => ({ exitCode: 0, stdout: '', stderr: '' }) },
    log: createLog('fatal'),
  })
