import { program } from '../base/program.ts'
import { networkForm } from '../base/address.ts'
import { Type, type Static, type TSchema } from 'typebox'
import { path, positive, strict } from '../config/schema-parts.ts'
import { otherResource } from './rate/rows.ts'

const rate = (requestsPerSecond: number, burst: number, of: string) => ({
  requestsPerSecond: positive(requestsPerSecond, 100_000, `Requests a second of one client or user ${of}.`),
  burst: positive(burst, 3_600, 'Seconds of that rate that may be sent at once after a pause.'),
})

const commonRates = (of: string) => ({
  enabled: Type.Boolean({ default: true, description: 'Whether requests are limited at all.' }),
  ...rate(10, 5, of),
})
const trackedKeys = positive(
  65_536,
  10_000_000,
  'Counters kept in memory; beyond that, those with most tokens left are removed.',
)

/** @param limited names of the resources whose rates may be set */
function ratesByResource(limited: readonly string[]) {
  const resources = [...limited, otherResource]
  return Type.Object(
    {
      ...commonRates('to one resource, the first name after /v1/ or /v1/edge-mgmt/'),
      login: Type.Object(rate(2, 5, 'to login and password reset together'), strict),
      blobs: Type.Object(rate(500, 5, 'that send the blobs of a bundle of content'), strict),
      resources: Type.Array(
        Type.String({
          pattern: `^(${resources.join('|')})=[1-9][0-9]{0,4}/[1-9][0-9]{0,2}$`,
          accepts: `<resource>=<requests a second, at most 99999>/<burst, at most 999>, the resource one of ${resources.join(', ')}`,
        }),
        { default: [], description: 'Resources with their own rate, for example clusters=50/5.' },
      ),
      trackedKeys,
    },
    strict,
  )
}

const whyByTable =
  'a table has the rates of paths, of which api.rateLimits.paths changes some; all other paths have api.rateLimits.requestsPerSecond and burst'

/** Rate limits with a table of rates by path. @param paths of the table */
const ratesByTable = (paths: readonly string[]) =>
  Type.Object(
    {
      ...commonRates('to all paths that have no rate of their own'),
      paths: Type.Array(
        Type.String({
          pattern: `^(${paths.map((path) => path.replaceAll(/[{}]/g, String.raw`\$&`)).join('|')})=[1-9][0-9]{0,4}/[1-9][0-9]{0,2}$`,
          accepts: '<path of the table>=<requests a second, at most 99999>/<burst, at most 999>',
        }),
        {
          default: [],
          description:
            'Other rates for paths that have one of their own, for example /v1/edgehosts/:uid/health=50/5.',
        },
      ),
      trackedKeys,
    },
    { ...strict, absent: { login: whyByTable, blobs: whyByTable, resources: whyByTable } },
  )

/**
 * The HTTPS port and its limits, with a rate for each resource.
 * @param limited names of the resources whose rates may be set
 */
export const apiSection = (limited: readonly string[]) => sectionWith(ratesByResource(limited))

/** The HTTPS port and its limits, with a table of rates by path. @param paths of the table */
export const apiSectionByTable = (paths: readonly string[]) => sectionWith(ratesByTable(paths))

function sectionWith<Rates extends TSchema>(rateLimits: Rates) {
  return Type.Object(
    {
      address: Type.String({
        format: 'ip',
        accepts: 'an IPv4 or IPv6 address',
        default: '::',
        description: `Address to listen on; :: is every address, IPv4 included. Must match ${program.daemon}.socket.`,
      }),
      port: positive(program.port, 65535, `Port to listen on. Must match ${program.daemon}.socket.`),
      socket: Type.Object(
        {
          path: Type.String({
            // sockaddr_un has 108 bytes, unix(7).
            pattern: '^(/[\\x01-\\x7f]{1,106})?$',
            accepts: 'an absolute path of at most 107 characters, or nothing for no socket',
            default: `/run/${program.folder}/${program.folder}.sock`,
            description: 'Unix socket on which root of this host uses the same API without a login.',
          }),
        },
        strict,
      ),
      tls: Type.Object(
        {
          certificateFile: Type.Optional(
            path(
              `/etc/${program.folder}/tls/server.crt`,
              "An administrator's own certificate chain, PEM. Needs keyFile.",
            ),
          ),
          keyFile: Type.Optional(
            path(
              `/etc/${program.folder}/tls/server.key`,
              'The private key of the certificate, PEM. Needs certificateFile.',
            ),
          ),
        },
        strict,
      ),
      timeouts: Type.Object(
        {
          handshakeMs: positive(5_000, 600_000, 'Time limit for the TLS handshake.'),
          headersMs: positive(5_000, 600_000, 'Time limit for the header fields of a request.'),
          idleMs: positive(30_000, 3_600_000, 'Time after which a connection without a request is closed.'),
          stalledMs: positive(
            120_000,
            3_600_000,
            'Time after which a connection on which no data is sent or received is closed.',
          ),
        },
        strict,
      ),
      body: Type.Object(
        {
          limitBytes: positive(
            1_048_576,
            1_073_741_824,
            'Largest JSON body; without a login at most 131072.',
          ),
          minimumBytesPerSecond: positive(
            1_024,
            1_073_741_824,
            'A connection whose body arrives more slowly is closed.',
          ),
          windowSeconds: positive(10, 3_600, 'The rate is measured over this many seconds.'),
        },
        strict,
      ),
      connections: Type.Object(
        {
          maximum: positive(1_000, 100_000, 'Open connections in all.'),
          maximumPerAddress: positive(
            64,
            100_000,
            'Open connections of one client, and of one user; an on-link IPv6 /64 as a whole has eight times as many.',
          ),
        },
        strict,
      ),
      trustedProxies: Type.Array(Type.String({ format: 'network', accepts: networkForm }), {
        default: [],
        description:
          'Proxies whose X-Forwarded-For names the client: its right-most address that is not one of them. From other addresses the field is ignored.',
      }),
      rateLimits,
    },
    strict,
  )
}

type Rates = Omit<Static<ReturnType<typeof ratesByTable>>, 'paths'> &
  Partial<Static<ReturnType<typeof ratesByResource>> & Static<ReturnType<typeof ratesByTable>>>

/** The section `api` of the configuration, of either form. */
export type ApiSettings = Omit<Static<ReturnType<typeof apiSection>>, 'rateLimits'> & { rateLimits: Rates }
