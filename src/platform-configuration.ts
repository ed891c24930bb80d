import { createConfiguration } from './create-configuration.ts'
import { checkReferencedFiles, configSchema, pairs, type PlatformConfig } from './platform-declarations.ts'

/** The configuration of edgeplatformd. */
export const configuration = createConfiguration<PlatformConfig>({
  configSchema,
  pairs,
  checkReferencedFiles,
})
