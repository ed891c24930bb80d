import { guessTables } from '../credentials/guess-store.ts'
import type { Migrations } from '../store/structure.ts'
import { apiKeyTables } from './migrations/api-keys.ts'
import { auditTables } from './migrations/audit.ts'
import { cloudTables } from './migrations/clouds.ts'
import { clusterTables } from './migrations/clusters.ts'
import { edgeHostDescribed, edgeHostKeys, edgeHostTables } from './migrations/edge-hosts.ts'
import { eventShares, eventTables } from './migrations/events.ts'
import { packTables } from './migrations/packs.ts'
import { profileTables } from './migrations/profiles.ts'
import { projectTables } from './migrations/projects.ts'
import { tenantTables } from './migrations/tenant.ts'
import { userTables } from './migrations/users.ts'

/**
 * The schema of the platform: what it was when its versions of before were folded into one, and one entry for each later change, applied in order and never edited once released. Times are milliseconds since 1970, UTC;
 * an empty project uid is the tenant itself.
 */
export const migrations: Migrations = {
  first: 4,
  install: 'a package that was built at c80bc925 or later',
  steps: [
    [
      tenantTables,
      auditTables,
      guessTables,
      userTables,
      projectTables,
      apiKeyTables,
      edgeHostTables,
      eventTables,
      packTables,
      profileTables,
      clusterTables,
      cloudTables,
    ].join('\n'),
    eventShares,
    edgeHostKeys,
    edgeHostDescribed,
  ],
}
