import type { Migrations } from '../store/database.ts'
import { apiKeyTables } from './migrations/api-keys.ts'
import { auditTables } from './migrations/audit.ts'
import { cloudTables } from './migrations/clouds.ts'
import { clusterTables } from './migrations/clusters.ts'
import { edgeHostDescribed, edgeHostKeys, edgeHostTables } from './migrations/edge-hosts.ts'
import { eventShares, eventTables } from './migrations/events.ts'
import { guessTables } from './migrations/guess.ts'
import { packTables } from './migrations/packs.ts'
import { profileTables } from './migrations/profiles.ts'
import { projectTables } from './migrations/projects.ts'
import { tenantTables } from './migrations/tenant.ts'
import { userTables } from './migrations/users.ts'

/**
 * The schema of the platform, one entry a change, applied in order and never edited once released. Times are milliseconds since 1970, UTC;
 * an empty project uid is the tenant itself.
 */
export const migrations: Migrations = [
  [
    tenantTables,
    auditTables,
    guessTables,
    userTables,
    projectTables,
    apiKeyTables,
    edgeHostTables,
    eventTables,
  ].join('\n'),
  [packTables, profileTables].join('\n'),
  clusterTables,
  cloudTables,
  eventShares,
  edgeHostKeys,
  edgeHostDescribed,
]
