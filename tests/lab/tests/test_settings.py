# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a lab lives, and that two labs on one machine share no name and no address."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from plumblab import settings
from plumblab.errors import LabError


def test_home_follows_the_environment(tmp_path: Path) -> None:
    assert settings.from_environment({"PLUMBLINE_LAB_HOME": str(tmp_path)}).home == tmp_path
    assert settings.from_environment({"XDG_CACHE_HOME": str(tmp_path)}).home == tmp_path / "plumbline-lab"
    assert settings.from_environment({"HOME": str(tmp_path)}).home == tmp_path / ".cache" / "plumbline-lab"


def test_addresses_follow_the_host_number(tmp_path: Path) -> None:
    lab = settings.from_environment({"PLUMBLINE_LAB_HOME": str(tmp_path)})
    assert [lab.address(number) for number in (1, 2, 4)] == ["10.89.77.11", "10.89.77.12", "10.89.77.14"]
    assert lab.gateway == "10.89.77.1"
    other = settings.from_environment({"PLUMBLINE_LAB_HOME": str(tmp_path), "PLUMBLINE_LAB_SUBNET": "10.9.8.0/24"})
    assert other.address(3) == "10.9.8.13"


def test_every_address_is_in_the_subnet_and_none_is_the_gateway(tmp_path: Path) -> None:
    lab = settings.from_environment({"PLUMBLINE_LAB_HOME": str(tmp_path), "PLUMBLINE_LAB_SUBNET": "10.9.8.64/26"})
    addresses = [lab.address(number) for number in range(1, settings.MAX_HOSTS + 1)]
    assert all(ipaddress.IPv4Address(address) in list(lab.subnet.hosts()) for address in addresses)
    assert lab.gateway not in addresses


def test_two_homes_share_no_machine_wide_name(tmp_path: Path) -> None:
    one, two = (settings.from_environment({"PLUMBLINE_LAB_HOME": str(tmp_path / name)}) for name in ("one", "two"))
    for name in ("network", "bridge", "nft_table", "cgroup"):
        assert getattr(one, name) != getattr(two, name)
    assert one.container("lab1") != two.container("lab1")
    assert one.mac(1) != two.mac(1) != two.mac(2)
    assert len(one.bridge) <= 15


@pytest.mark.parametrize("subnet", ["10.89.77.0/28", "8.8.8.0/24", "10.89.77.1/24", "nonsense"])
def test_an_unusable_subnet_is_refused_with_a_way_on(subnet: str) -> None:
    with pytest.raises(LabError) as caught:
        settings.from_environment({"PLUMBLINE_LAB_SUBNET": subnet})
    assert subnet in caught.value.seen
    assert caught.value.next_step


def test_the_trust_bundle_is_one_that_exists(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("")
    assert settings.from_environment({"SSL_CERT_FILE": "/nowhere", "PIP_CERT": str(bundle)}).ca_bundle == bundle
    assert settings.from_environment({}).ca_bundle is None
