import { about as api } from '../api/about.ts'
import { about as audit } from '../audit/about.ts'
import { about as auth } from '../auth/about.ts'
import { about as certificate } from '../certificate/about.ts'
import { about as cluster } from '../cluster/about.ts'
import { about as hostConfiguration } from '../configuration/about.ts'
import { about as content } from '../content/about.ts'
import { about as credentials } from '../credentials/about.ts'
import { about as definition } from '../definition/about.ts'
import { about as diagnosis } from '../diagnosis/about.ts'
import { about as host } from '../host/about.ts'
import { about as images } from '../images/about.ts'
import { about as inventory } from '../inventory/about.ts'
import { about as jobs } from '../jobs/about.ts'
import { about as metrics } from '../metrics/about.ts'
import { about as power } from '../power/about.ts'
import { about as network } from '../network/about.ts'
import { about as networkTrial } from '../network/trial/about.ts'
import { about as pages } from '../pages/about.ts'
import { about as program } from '../program/about.ts'
import type { Declaration } from '../root/room.ts'
import { about as setup } from '../setup/about.ts'
import { about as service } from '../service/about.ts'
import { about as store } from '../store/about.ts'
import { checkFilesOf, sumDeclarations, type ConfigOf } from '../root/declarations.ts'
import { about as uplink } from '../uplink/about.ts'
import type { Loaded } from '../config/load.ts'
import { createConfiguration } from '../root/configuration.ts'

// In the order of the configuration file and of the documents.
const all = [
  service,
  host,
  uplink,
  inventory,
  network,
  networkTrial,
  setup,
  api,
  pages,
  certificate,
  credentials,
  auth,
  content,
  images,
  definition,
  cluster,
  power,
  hostConfiguration,
  diagnosis,
  audit,
  jobs,
  metrics,
  store,
  program,
] as const

/** The declaration of each room. */
export const declarations: readonly Declaration[] = all

/** Every error, metric, code of attention, tag and file of the support archive, and the schema of the whole configuration. */
export const { errorTable, families, attention, tags, supportSources, pairs, configSchema } =
  sumDeclarations(declarations)

/** The configuration: validated, complete, and frozen when it is loaded. */
export type Config = ConfigOf<(typeof all)[number]>

/** Checks all cryptographic keys and files that a configuration names, as their rooms do at the start. */
export const checkReferencedFiles = checkFilesOf(declarations)

/** The effective configuration of the daemon and the source of each value. */
export type LoadedConfig = Loaded<Config>

/** The configuration of edgehostd. */
export const configuration = createConfiguration<Config>({ configSchema, pairs, checkReferencedFiles })

export const { parseCommandLine, loadConfig, explainConfig, helpText, defaultConfigFile } = configuration
