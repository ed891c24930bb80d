import { guessTables } from '../credentials/guess-store.ts'
import { secretMarkTable } from '../secrets/secrets.ts'
import type { Migrations } from '../store/structure.ts'
import { apiKeyTables } from '../platform/keys/keys.ts'
import { auditTables } from '../platform/audits/audits.ts'
import { cloudTables } from '../platform/clouds/clouds.ts'
import { clusterTables } from '../platform/clusters/store.ts'
import { edgeHostDescribed, edgeHostKeys, edgeHostTables } from '../platform/hosts/store.ts'
import { eventShares, eventTables } from '../platform/events/events.ts'
import { packTables } from '../platform/packs/store.ts'
import { profileTables } from '../platform/profiles/store.ts'
import { projectTables } from '../platform/projects/store.ts'
import { tenantTables } from '../platform/system/tenant.ts'
import { userTables } from '../platform/users/store.ts'

/**
 * The schema of the platform: the one that its former versions were folded into, and one entry for each later change, applied in order and
 * never edited once released. Times are milliseconds since 1970, UTC; an empty project uid is the tenant itself.
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
    secretMarkTable,
  ],
}
