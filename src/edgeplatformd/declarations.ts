import { aboutByTable } from '../api/about.ts'
import { about as audit } from '../audit/about.ts'
import { about as certificate } from '../certificate/about.ts'
import { about as credentials } from '../credentials/about.ts'
import { about as jobs } from '../jobs/about.ts'
import { about as metrics } from '../metrics/about.ts'
import { about as pages } from '../pages/about.ts'
import { about as platform } from '../platform/about.ts'
import { rateRows } from '../platform/requests/rates.ts'
import { about as program } from '../program/about.ts'
import type { Declaration } from '../root/room.ts'
import { about as store } from '../store/about.ts'
import { checkFilesOf, sumDeclarations, type ConfigOf } from '../root/declarations.ts'
import { createConfiguration } from '../root/configuration.ts'

// In the order of the configuration file and of the documents.
const all = [
  platform,
  aboutByTable(rateRows),
  certificate,
  credentials,
  audit,
  jobs,
  metrics,
  pages,
  store,
  program,
] as const

/** The declaration of each room of the platform. */
const declarations: readonly Declaration[] = all

/** Every error, metric and tag of the platform, and the schema of its whole configuration. */
export const { errorTable, families, tags, pairs, configSchema } = sumDeclarations(declarations)

/** The configuration: validated, complete, and frozen when it is loaded. */
export type PlatformConfig = ConfigOf<(typeof all)[number]>

/** Checks all cryptographic keys and files that a configuration names, as their rooms do at the start. */
const checkReferencedFiles = checkFilesOf(declarations)

/** The configuration of edgeplatformd. */
export const configuration = createConfiguration<PlatformConfig>({
  configSchema,
  pairs,
  checkReferencedFiles,
})
