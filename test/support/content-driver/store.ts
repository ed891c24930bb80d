import { join } from 'node:path'
import type { ContentProgram } from '../../../src/content/program/content-program.ts'
import { createContentStore } from '../../../src/content/store/open-store.ts'
import { createLog } from '../../../src/system/log.ts'

/** The store of a folder, without sync(1): a kill loses nothing of what the kernel has. */
export const driverStore = (folder: string, program: Pick<ContentProgram, 'publish'>) =>
  createContentStore({
    ...{
      root: join(folder, 'content'),
      requirePlace: async () => undefined,
      indexFile: join(folder, 'content.db'),
      bootId: 'boot',
      program,
    },
    ...{ reserve: { percent: 0, leastBytes: 0 }, definitions: undefined, clock: { now: Date.now } },
    runner: { run: async () => ({ exitCode: 0, stdout: '', stderr: '' }) },
    log: createLog('fatal'),
  })
