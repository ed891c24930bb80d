import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A certificate that signs itself, made by openssl(1).
 * @param isAuthority whether it may sign others
 * @param days of its validity from now; negative: it has expired
 */
export function selfSignedCertificate(name: string, isAuthority: boolean, days = 30) {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-authority-'))
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const [from, until] = [Date.now() + Math.min(0, days * 2) * 86_400_000, Date.now() + days * 86_400_000]
    const time = (ms: number) => `${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
    execFileSync('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key])
    const request = join(folder, 'request.pem')
    execFileSync('openssl', ['req', '-new', '-key', key, '-subj', `/CN=${name}`, '-out', request])
    const config = join(folder, 'ca.cnf')
    const database = join(folder, 'index.txt')
    const lines = [
      '[ca]\ndefault_ca = own',
      `[own]\ndatabase = ${database}\nnew_certs_dir = ${folder}\nrand_serial = yes\ndefault_md = sha256\npolicy = any\nx509_extensions = of`,
      '[any]\ncommonName = supplied',
      `[of]\nbasicConstraints = critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}\nsubjectAltName = DNS:${name}`,
    ]
    execFileSync('sh', ['-c', `cat >"$1"; : >"$2"`, 'sh', config, database], { input: lines.join('\n') })
    const times = ['-startdate', time(from), '-enddate', time(until)]
    execFileSync(
      'openssl',
      [
        'ca',
        '-batch',
        '-selfsign',
        '-config',
        config,
        '-keyfile',
        key,
        '-in',
        request,
        '-out',
        cert,
        '-notext',
        ...times,
      ],
      { stdio: 'pipe' },
    )
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
