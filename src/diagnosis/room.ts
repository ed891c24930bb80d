// What finds the cause of trouble: files that others put into a folder of this host (`files.ts`).

import type { Ground, Room } from '../root/room.ts'
import type { DiagnosisSettings } from './config.ts'
import { createOfferedFiles } from './files.ts'
import { fileRoutes } from './routes-files.ts'

/** Diagnosis of this host. */
export function createDiagnosis(ground: Ground<{ readonly diagnosis: DiagnosisSettings }>): Room {
  const settings = ground.config.diagnosis
  return {
    async routes(app) {
      await fileRoutes(app, { files: createOfferedFiles(settings.filesDirectory) })
    },
  }
}
